"""``tf.app``: a program that begins with its flags."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags as _absl

from runnel import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls ``main`` (the program's, by default) and exits with what it returns.

    ``main`` is given the other arguments, the program's name first; as in TensorFlow, a flag that
    nobody has defined is one of them.

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
    try:
        return flags.FLAGS(arguments, known_only=True)
    except _absl.Error as error:
        sys.exit(f"{arguments[0]}: {error}\nPass --help to see the flags.")


def __dir__() -> list[str]:
    return __all__
