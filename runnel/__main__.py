"""``python -m runnel``: the command ``runnel``."""

from __future__ import annotations

from runnel.command_line import main

if __name__ == "__main__":
    main(prog_name="runnel")
