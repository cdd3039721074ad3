"""Checkpoints that are kept because they are the best by some metric."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from runnel.checkpoint.reading import checkpoint_exists
from runnel.checkpoint.whole_file import write_whole
from runnel.train.checkpoint_state import remove_checkpoint, update_checkpoint_state
from runnel.train.saver import Saver

_FILE = "best_checkpoints.json"


class BestSaver:
    """Keeps the ``max_to_keep`` checkpoints of a folder with the best values of a metric.

    Small values are best, as of a loss, unless ``larger_is_better``. What is not a number is never
    among the best. ``tf.train.latest_checkpoint`` of the folder is the best one; a program that
    begins again goes on with those that are there. The folder is this one's alone. ``saver`` says
    what is saved, by default all variables.

    Example:
        >>> best = tf.train.BestSaver("/tmp/model/best", larger_is_better=True)
        >>> best.save(sess, accuracy, global_step=step)  # a name, or None: it was not good enough
        >>> saver.restore(sess, best.best_checkpoint)
    """

    def __init__(
        self,
        folder: Any,
        max_to_keep: int = 1,
        larger_is_better: bool = False,
        saver: Saver | None = None,
        basename: str = "best.ckpt",
    ) -> None:
        if max_to_keep < 1:
            raise ValueError(f"max_to_keep must be at least 1, not {max_to_keep}")
        self._folder = Path(os.path.abspath(os.fsdecode(os.fspath(folder))))
        self._max_to_keep = max_to_keep
        self._sign = -1.0 if larger_is_better else 1.0
        self._saver = saver or Saver()
        self._basename = basename
        self._kept: list[tuple[float, str]] = self._read()

    @property
    def best_checkpoint(self) -> str | None:
        """The checkpoint with the best value; None if there is none."""
        return str(self._folder / self._kept[0][1]) if self._kept else None

    @property
    def checkpoints(self) -> list[tuple[float, str]]:
        """The values and names of the checkpoints that are kept, the best first."""
        return [(value, str(self._folder / name)) for value, name in self._kept]

    def save(self, sess: Any, value: Any, global_step: Any) -> str | None:
        """Saves a checkpoint if ``value`` is among the best; returns its name, else None.

        Of equal values the first is the better.
        """
        value = float(value)
        worst = self._kept[-1][0] if len(self._kept) >= self._max_to_keep else None
        if math.isnan(value) or worst is not None and self._sign * (value - worst) >= 0:
            return None
        path = self._saver.save(
            sess, self._folder / self._basename, global_step=global_step, write_state=False
        )
        if path is None:
            return None
        name = os.path.basename(path)
        kept = [one for one in self._kept if one[1] != name]
        kept.append((value, name))
        kept.sort(key=lambda one: self._sign * one[0])
        self._kept, dropped = kept[: self._max_to_keep], kept[self._max_to_keep :]
        # What is named exists, whenever the process is killed: dropped ones go last.
        self._write()
        for _, old in dropped:
            remove_checkpoint(str(self._folder / old))
        return path

    def _write(self) -> None:
        content = [{"checkpoint": name, "value": value} for value, name in self._kept]
        write_whole(self._folder / _FILE, json.dumps(content, indent=1).encode())
        names = [name for _, name in reversed(self._kept)]  # the best is the latest
        paths = [str(self._folder / name) for name in names]
        update_checkpoint_state(str(self._folder), paths[-1], paths, save_relative_paths=True)

    def _read(self) -> list[tuple[float, str]]:
        path = self._folder / _FILE
        if not path.exists():
            return []
        try:
            listed = json.loads(path.read_bytes())
            found = [(float(one["value"]), str(one["checkpoint"])) for one in listed]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is damaged: {error!r}; remove it to begin anew") from None
        if any(os.path.basename(name) != name or not name for _, name in found):
            raise ValueError(f"{path} names a checkpoint outside of its folder")
        found = [one for one in found if checkpoint_exists(str(self._folder / one[1]))]
        return sorted(found, key=lambda one: self._sign * one[0])
