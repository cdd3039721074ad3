"""``tf.app``: a program that begins with its flags."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from runnel import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls ``main`` (the program's, by default) and exits with what it returns.

    ``main`` is given the arguments that are no flags, the program's name first.

    Example:
        >>> tf.app.flags.DEFINE_integer("steps", 1000, "how many steps to train")
        >>> if __name__ == "__main__":
        ...     tf.app.run()
    """
    from absl import app

    if main is None:
        main = sys.modules["__main__"].main
    app.run(main=main, argv=None if argv is None else list(argv), flags_parser=_parsed)


def _parsed(arguments: list[str]) -> list[str]:
    """The arguments that are no flags; a flag that nobody has defined is an error that says so."""
    return flags.FLAGS(arguments)


def __dir__() -> list[str]:
    return __all__
