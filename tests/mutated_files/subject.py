"""What a kind of file is to those who damage it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import runnel as tf


@dataclass(frozen=True)
class Subject:
    """A kind of file: ``make`` writes one into a folder, ``damage`` changes it, ``read`` reads it.

    ``damage`` returns whether checksums were made to fit: then other values can be read. What
    ``read`` returns is otherwise that of the file as it was made.
    """

    make: Callable[[Path], None]
    damage: Callable[[Path, random.Random], bool]
    read: Callable[[Path], Any]
    expected: tuple[type[Exception], ...] = (tf.errors.OpError,)
