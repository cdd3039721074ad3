"""The four ways in which a step with loops and conditionals can run, each the others' oracle.

``event-driven``: by pending counts, or functions that do what the counts would do; interpreted.
``event-driven, compiled``: the same, with all that can be in compiled stretches. ``structured``:
loops and conditionals as wholes, interpreted. ``compiled``: as wholes, by XLA where they have a
compiled form, and in compiled stretches where they have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import runnel as tf
from runnel.runtime.state.options import ALWAYS, NEVER, SessionOptions

MODES: dict[str, dict[str, Any]] = {
    "event-driven": {"jit": NEVER, "raises": False},
    "event-driven, compiled": {"jit": ALWAYS, "raises": False},
    "structured": {"jit": NEVER, "raises": True},
    "compiled": {"jit": ALWAYS, "raises": True},
}

_LEVELS = {NEVER: -1, ALWAYS: 1}


def config_for(mode: str, devices: int = 1) -> tf.ConfigProto:
    """What makes a session run in ``mode``, on so many CPU devices."""
    config = tf.ConfigProto(device_count={"CPU": devices})
    config.graph_options.optimizer_options.global_jit_level = _LEVELS[MODES[mode]["jit"]]
    config.experimental.executor_type = "DEFAULT" if MODES[mode]["raises"] else "DATAFLOW"
    return config


@contextmanager
def forced(mode: str) -> Iterator[None]:
    """Within the block, a session that is given no config runs in ``mode``."""
    original = SessionOptions.__dict__["from_config"]

    def from_config(cls: type[SessionOptions], config: Any) -> SessionOptions:
        return cls(**MODES[mode]) if config is None else original.__func__(cls, config)

    SessionOptions.from_config = classmethod(from_config)  # type: ignore[assignment]
    try:
        yield
    finally:
        SessionOptions.from_config = original  # type: ignore[method-assign]
