"""Whether a watched value is better than another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import logging


def better(mode: str, monitor: str, rising: tuple[str, ...] = ("acc",)) -> Callable[..., Any]:
    """``np.less`` or ``np.greater``: of ``mode``, or of what the name of the value says."""
    if mode not in ("auto", "min", "max"):
        logging.warning("mode %s is unknown, fallback to auto mode.", mode)
        mode = "auto"
    if mode == "auto":
        rises = any(part in monitor for part in rising) or monitor.startswith("fmeasure")
        mode = "max" if rises else "min"
    return np.greater if mode == "max" else np.less


def worst(compare: Any) -> float:
    """What every value is better than."""
    return -np.inf if compare is np.greater else np.inf


def current(monitor: str, logs: Any, what: str) -> Any:
    """The value in the logs; a warning and None if it is not there."""
    found = (logs or {}).get(monitor)
    if found is None:
        logging.warning(
            "%s conditioned on metric `%s` which is not available. Available metrics are: %s",
            *(what, monitor, ",".join(list((logs or {}).keys()))),
        )
    return found
