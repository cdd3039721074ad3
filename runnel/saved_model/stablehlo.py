"""An inference graph as StableHLO, for whatever runs that: by ``jax.export``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import Graph
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.operation import Tensor
from runnel.graph_util import convert_variables_to_constants
from runnel.runtime.report.pure_step import pure_step
from runnel.runtime.session.session import Session
from runnel.wide_types import with_wide_types

_COMPILED = 1
_PORTABLE = "any"
"""A platform that has no kernels of its own: everything is said in plain StableHLO."""
_MOST = 1 << 20
"""What a size that is left open may be at most."""


def export_stablehlo(
    sess: Any,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    path: Any = None,
    platforms: Sequence[str] = ("cpu", "cuda", "rocm", "tpu"),
) -> Any:
    """Exports what computes ``outputs`` of ``inputs``, with the variables' present values.

    Returns a ``jax.export.Exported`` whose function takes a dictionary of inputs and gives one of
    outputs; its ``mlir_module()`` is the StableHLO. With ``path`` it is also written: as text if
    that ends with ``.mlir``, else serialized, to be read by ``jax.export.deserialize``. Sizes that
    are not known stay open, up to a million; unknown first ones are all the size of the batch.

    What only a host can compute (strings, ``py_func``), random numbers and updates of variables
    cannot be exported: the error names the operation. Checks of data are left out.
    Convolutions and most loops need inputs of known sizes. Serializing needs ``flatbuffers``.

    Example:
        >>> tf.saved_model.export_stablehlo(sess, {"x": x}, {"y": y}, "/tmp/model.stablehlo")
        >>> model = jax.export.deserialize(open("/tmp/model.stablehlo", "rb").read())
        >>> model.call({"x": batch})["y"]
    """
    names = sorted(inputs)
    with Graph().as_default() as graph:
        described = sess.graph.as_graph_def()
        wanted = [tensor.op.name for tensor in outputs.values()]
        frozen = convert_variables_to_constants(sess, described, wanted)
        import_graph_def(frozen, name="")
        feeds = [_found(graph, name, inputs[name]) for name in names]
        fetches = [graph.get_tensor_by_name(tensor.name) for tensor in outputs.values()]
        config = sess._config.__class__() if sess._config is not None else _config()
        config.graph_options.optimizer_options.global_jit_level = _COMPILED
        with Session(config=config) as own:
            step = pure_step(own._plan(fetches, [], feeds), _PORTABLE)
            return with_wide_types(_exported, step, names, list(outputs), feeds, path, platforms)


def _config() -> Any:
    from tensorboard.compat.proto.config_pb2 import ConfigProto

    return ConfigProto()


def _found(graph: Graph, name: str, tensor: Tensor) -> Tensor:
    try:
        return graph.get_tensor_by_name(tensor.name)
    except KeyError:
        raise ValueError(f"No output depends on the input {name!r}, {tensor.name}") from None


def _exported(
    step: Any,
    names: list[str],
    outputs: list[str],
    feeds: list[Tensor],
    path: Any,
    platforms: Sequence[str],
) -> Any:
    import jax
    from jax import export

    def named(given: dict[str, Any]) -> dict[str, Any]:
        found = step(*[given[name] for name in names])
        return dict(zip(outputs, found, strict=True))

    texts = {name: _dimensions(tensor, n) for n, (name, tensor) in enumerate(zip(names, feeds))}
    unknown = sorted({text for all_ in texts.values() for text in all_ if not text.isdecimal()})
    # Whether an array can be addressed has an answer only for sizes that have bounds.
    bounds = [f"{name} {bound}" for name in unknown for bound in (">= 1", f"<= {_MOST}")]
    scope = export.SymbolicScope(bounds)
    shapes = {
        name: jax.ShapeDtypeStruct(
            export.symbolic_shape(", ".join(texts[name]), scope=scope), tensor.dtype.np_dtype
        )
        for name, tensor in zip(names, feeds, strict=True)
    }
    try:
        exported = export.export(jax.jit(named), platforms=list(platforms))(shapes)
    except Exception as error:
        if all(isinstance(size, int) for one in shapes.values() for size in one.shape):
            raise
        open_ = {name: str(one.shape) for name, one in shapes.items()}
        raise InvalidArgumentError(
            None,
            getattr(error, "op", None),
            f"This cannot be exported for sizes that are not known, {open_}: {error}. Give the "
            "placeholders whole shapes.",
        ) from error
    if path is not None:
        target = Path(os.fsdecode(os.fspath(path)))
        text = target.suffix == ".mlir"
        content = exported.mlir_module().encode() if text else bytes(exported.serialize())
        write_whole(target, content)
    return exported


def _dimensions(tensor: Tensor, number: int) -> list[str]:
    """The sizes of an input: numbers, and names of those that are not known."""
    if tensor.shape.ndims is None:
        raise ValueError(f"The rank of the input {tensor.name} must be known")
    return [
        str(size) if size is not None else ("batch" if place == 0 else f"size{number}_{place}")
        for place, size in enumerate(tensor.shape.as_list())
    ]
