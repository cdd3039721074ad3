"""The fields of ``ConfigProto`` and ``RunOptions`` on which a session acts.

Of ``graph_options``:

- ``optimizer_options.global_jit_level``: -1 never compiles, 1 always does;
- ``optimizer_options.opt_level``: -1 runs a step as it was described, without any rewriting;
- ``rewrite_options.auto_mixed_precision`` and ``auto_mixed_precision_onednn_bfloat16``: 1 computes
  products in float16 or bfloat16, 2 as they are described, whatever the graph says.

Of the other fields:

- ``experimental.executor_type``: "DATAFLOW" runs every loop and conditional by pending counts;
- ``operation_timeout_in_ms``: the deadline of every step that sets none itself;
- ``device_count``, ``allow_soft_placement``, ``log_device_placement`` and, of ``gpu_options``,
  ``visible_device_list``, ``allow_growth`` and ``per_process_gpu_memory_fraction``
  (``runtime.devices.session_devices``).

Settings for which TensorFlow has no field are parameters of a "custom optimizer" named runnel, in
``graph_options.rewrite_options.custom_optimizers``:

    own = config.graph_options.rewrite_options.custom_optimizers.add(name="runnel")
    own.parameter_map["steps_ahead"].i = 0  # every step is waited for
    own.parameter_map["tensor_float_32"].b = False

They override the process's settings (``runtime.session.settings``). runnel accepts every other
field and has nothing to decide by it, such as the sizes of thread pools (XLA has its own).

Of ``RunOptions``: ``timeout_in_ms``, ``output_partition_graphs`` and ``trace_level``. Any level but
``NO_TRACE`` fills ``RunMetadata.step_stats``. ``SOFTWARE_TRACE`` runs each operation of a step of
this process by itself, interpreted if it can be; the others leave tiers as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runnel.graph import dtypes
from runnel.graph.dtypes import DType

AUTO, NEVER, ALWAYS = "auto", "never", "always"
"""Whether segments are compiled: when that pays, never, whatever can be."""
_ON, _OFF = 1, 2
_OWN = {"steps_ahead": "i", "tensor_float_32": "b"}
"""runnel's own settings, and the field of ``AttrValue`` that each is in."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The settings of a session that runnel acts upon, or of a step."""

    jit: str = AUTO
    optimizer: bool = True
    timeout_ms: int = 0
    raises: bool = True
    """Whether loops and conditionals are run as wholes, where they are well-formed."""

    precision: DType | None = None
    """The 16-bit type of products; None leaves it to the graph, float32 forbids it."""

    steps_ahead: int | None = None
    """How many steps may be on their way to a device; None leaves it to the process, or, where that
    has been asked, means as many as pay there."""

    tensor_float_32: bool | None = None
    """Whether a GPU may multiply in tf32; None leaves it to the process."""

    @classmethod
    def from_config(cls, config: Any) -> SessionOptions:
        """Reads a ``ConfigProto`` (or None)."""
        if config is None:
            return cls()
        if not hasattr(config, "graph_options"):
            raise TypeError(f"config must be a tf.ConfigProto, but got {config!r}")
        optimizer_options = config.graph_options.optimizer_options
        level = optimizer_options.global_jit_level
        jit = NEVER if level < 0 else ALWAYS if level > 0 else AUTO
        return cls(
            jit=jit,
            optimizer=optimizer_options.opt_level >= 0,
            timeout_ms=config.operation_timeout_in_ms,
            raises=_raises(config.experimental.executor_type),
            precision=_precision(config.graph_options.rewrite_options),
            **_own(config.graph_options.rewrite_options),
        )


def _precision(rewrite_options: Any) -> DType | None:
    half = rewrite_options.auto_mixed_precision
    brain = rewrite_options.auto_mixed_precision_onednn_bfloat16
    if half == _ON:
        return dtypes.float16
    if brain == _ON:
        return dtypes.bfloat16
    return dtypes.float32 if _OFF in (half, brain) else None


def _own(rewrite_options: Any) -> dict[str, Any]:
    """The settings that are runnel's own."""
    own: dict[str, Any] = {}
    for optimizer in rewrite_options.custom_optimizers:
        if optimizer.name != "runnel":
            continue
        for name, value in optimizer.parameter_map.items():
            kind = _OWN.get(name)
            if kind is None or value.WhichOneof("value") != kind:
                known = ", ".join(f"{name} ({kind})" for name, kind in _OWN.items())
                raise ValueError(
                    f"The parameter {name!r} of the custom optimizer 'runnel' in ConfigProto is "
                    f"{str(value).strip()!r}; there are, each with its field: {known}"
                )
            own[name] = getattr(value, kind)
    if own.get("steps_ahead", 0) < 0:
        raise ValueError(f"steps_ahead is {own['steps_ahead']}; it must not be negative")
    return own


def _raises(executor_type: str) -> bool:
    if executor_type in ("", "DEFAULT"):
        return True
    if executor_type == "DATAFLOW":
        return False
    raise ValueError(
        f"ConfigProto.experimental.executor_type is {executor_type!r}; there are 'DEFAULT' and "
        "'DATAFLOW'"
    )
