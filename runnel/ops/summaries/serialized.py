"""What the operations of this folder share: a tag that comes in, a ``Summary`` that goes out."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import scalar


def register_summary_op(name: str, inputs: str, attrs: Any) -> OpDef:
    """Registers an operation whose output is one serialized ``Summary``."""
    op_def = register_op(
        name, inputs=inputs, outputs="summary: string", attrs=attrs, host=True, differentiable=False
    )
    op_def.shape(scalar)
    return op_def


@cache
def summary_class() -> Any:
    """The class of ``Summary`` messages; protocol buffers are loaded when one is needed."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary


def serialized(summary: Any) -> np.ndarray:
    """``summary`` as the value of a string tensor."""
    return string_scalar(summary.SerializeToString())


def string_scalar(content: bytes) -> np.ndarray:
    """``content`` as the value of a string tensor."""
    out = np.empty((), object)
    out[()] = content
    return out


def text(content: Any) -> str:
    """A tag as protocol buffers take it."""
    return content if isinstance(content, str) else content.decode(errors="replace")


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error for a value that cannot be shown."""
    return errors.InvalidArgumentError(None, None, message)


def single(value: Any, what: str) -> Any:
    """The only element of a scalar."""
    array = np.asarray(value)
    if array.ndim:
        raise invalid(f"{what} must be a scalar, but has the shape {list(array.shape)}")
    return array.item()


def numbered_tag(tag: str, kind: str, index: int, limit: int) -> str:
    """The tag of one of at most ``limit`` images or clips: TensorBoard groups by the slashes."""
    return f"{tag}/{kind}/{index}" if limit > 1 else f"{tag}/{kind}"
