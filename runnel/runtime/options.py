"""What a session takes from ``ConfigProto``.

Acted upon: ``graph_options.optimizer_options.global_jit_level`` (-1 never compiles, 1 always does),
``graph_options.optimizer_options.opt_level`` (-1 runs a step as it was described, without any
rewriting), ``operation_timeout_in_ms`` (the deadline of every step that sets none itself). Every
other field is accepted and has nothing to decide here: ``allow_soft_placement`` (a step runs on one
device), ``log_device_placement``, ``gpu_options``, the sizes of thread pools (XLA's own).

Of ``RunOptions``: ``timeout_in_ms``, ``trace_level`` and ``output_partition_graphs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runnel.runtime.tiers import ALWAYS, AUTO, NEVER


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The settings of a session that runnel acts upon."""

    jit: str = AUTO
    optimizer: bool = True
    timeout_ms: int = 0
    device: str = "CPU"

    @classmethod
    def from_config(cls, config: Any) -> SessionOptions:
        """Reads a ``ConfigProto`` (or None)."""
        if config is None:
            return cls(device=default_device_kind())
        if not hasattr(config, "graph_options"):
            raise TypeError(f"config must be a tf.ConfigProto, but got {config!r}")
        optimizer_options = config.graph_options.optimizer_options
        level = optimizer_options.global_jit_level
        jit = NEVER if level < 0 else ALWAYS if level > 0 else AUTO
        return cls(
            jit=jit,
            optimizer=optimizer_options.opt_level >= 0,
            timeout_ms=config.operation_timeout_in_ms,
            device=default_device_kind(),
        )


def default_device_kind() -> str:
    """ "CPU", "GPU" or "TPU": where steps run that say nothing of devices."""
    from runnel.runtime.devices import default_device_kind

    return default_device_kind()
