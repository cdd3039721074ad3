"""Variables whose values are in memory-mapped files, and may be larger than memory."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

from runnel.graph.graph import get_default_graph


def mapped_variables(folder: str | os.PathLike[str] | None) -> AbstractContextManager[Any]:
    """Variables that are made in the block have their values in files in ``folder``.

    So have the slots that optimizers keep beside them. ``folder`` is one of the machine whose task
    has the variable; a relative one is in the folder of that process. None ends the effect of an
    outer block. Single numbers and strings stay in memory.

    Example:
        >>> with tf.mapped_variables("/ssd/tables"):
        ...     table = tf.get_variable("table", [1_000_000_000, 64])
    """
    return get_default_graph()._mapped_variables("" if folder is None else os.fspath(folder))
