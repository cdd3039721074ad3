"""``tf.flags`` and ``tf.app.flags``: settings of a program from its command line.

These are absl's, with what TensorFlow 1.15 adds: flags are parsed when the first one is read, so a
program needs no ``tf.app.run``, and ``DEFINE_...`` takes the argument names of older programs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from absl import flags as _absl
from absl.flags import *  # noqa: F403

_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class FlagsOnDemand:
    """absl's ``FLAGS``, parsed from the command line when a flag is first read."""

    def __init__(self, wrapped: _absl.FlagValues) -> None:
        self.__dict__["__wrapped"] = wrapped

    def __getattr__(self, name: str) -> Any:
        wrapped = self.__dict__["__wrapped"]
        if name != "__flags" and not wrapped.is_parsed():
            wrapped(sys.argv, known_only=True)
        return getattr(wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["__wrapped"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["__wrapped"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__wrapped"])

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["__wrapped"][name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self.__dict__["__wrapped"][name] = flag

    def __len__(self) -> int:
        return len(self.__dict__["__wrapped"])

    def __iter__(self) -> Any:
        return iter(self.__dict__["__wrapped"])

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["__wrapped"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__wrapped"](*args, **kwargs)


FLAGS = FlagsOnDemand(_absl.FLAGS)


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def defined(*args: Any, **kwargs: Any) -> Any:
        return define(*args, **{_OLD_NAMES.get(key, key): v for key, v in kwargs.items()})

    return defined


DEFINE_string = _with_old_names(_absl.DEFINE_string)
DEFINE_boolean = _with_old_names(_absl.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _with_old_names(_absl.DEFINE_float)
DEFINE_integer = _with_old_names(_absl.DEFINE_integer)

__all__ = sorted({*_absl.__all__, "DEFINE_bool"})


def __dir__() -> list[str]:
    return __all__
