"""Waiting for the checkpoints that another process writes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from runnel.train.checkpoint_state import latest_checkpoint

logger = logging.getLogger("runnel")

# Another process writes the checkpoints: all there is to do is look again after a while.
_nothing_happens = threading.Event()


def wait_for_new_checkpoint(
    checkpoint_dir: Any,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """The newest checkpoint of a folder, once that is not ``last_checkpoint``.

    The folder is looked at every ``seconds_to_sleep``; None when ``timeout`` seconds have passed.
    """
    logger.info("Waiting for a new checkpoint in %s", checkpoint_dir)
    limit = None if timeout is None else time.monotonic() + timeout
    while True:
        newest = latest_checkpoint(checkpoint_dir)
        if newest is not None and newest != last_checkpoint:
            return newest
        if limit is not None and time.monotonic() + seconds_to_sleep > limit:
            return None
        _nothing_happens.wait(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The newest checkpoint of a folder, again and again as new ones come.

    At least ``min_interval_secs`` lie between two. It ends when none comes for ``timeout`` seconds,
    unless ``timeout_fn`` says (with False) that more may come.

    Example:
        >>> for path in tf.train.checkpoints_iterator("/tmp/model", timeout=600):
        ...     saver.restore(sess, path)
    """
    path = None
    while True:
        newest = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if newest is None:
            if timeout_fn is None or timeout_fn():
                logger.info("No checkpoint came in time.")
                return
            continue
        path = newest
        next_at = time.monotonic() + min_interval_secs
        yield path
        _nothing_happens.wait(max(next_at - time.monotonic(), 0))
