"""``python -m runnel``: the command ``runnel``."""

from __future__ import annotations

from runnel.command_line import main

main(prog_name="runnel")
