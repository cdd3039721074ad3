"""Values that may be missing: what ``get_next_as_optional`` gives, at the end too."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import scalar as scalar_shape
from runnel.ops.data.dataset_ops import TYPES
from runnel.ops.data.declared_types import of_types
from runnel.pipelines.sources import scalar


class OptionalValue:
    """The components of a value, or None where there is none."""

    def __init__(self, components: list[Any] | None) -> None:
        self.components = components


def _op(name: str, inputs: str, outputs: str, attrs: Any = ()) -> OpDef:
    return register_op(
        name, inputs=inputs, outputs=outputs, attrs=list(attrs), host=True, differentiable=False
    )


none_op = _op("OptionalNone", "", "optional: variant")
from_value_op = _op(
    "OptionalFromValue",
    "components: Toutput_types",
    "optional: variant",
    ["Toutput_types: list(type) >= 1"],
)
has_value_op = _op("OptionalHasValue", "optional: variant", "has_value: bool")
get_value_op = _op("OptionalGetValue", "optional: variant", "components: output_types", TYPES)
none_op.shape(lambda: ())
from_value_op.shape(scalar_shape)
has_value_op.shape(lambda optional: ())


@get_value_op.shape
def _(optional, *, output_shapes):
    return [shape._dims for shape in output_shapes]


def _optional(variant: Any) -> OptionalValue:
    found = variant[()] if isinstance(variant, np.ndarray) and not variant.ndim else variant
    if not isinstance(found, OptionalValue):
        raise InvalidArgumentError(None, None, f"An Optional is expected here, not {found!r}")
    return found


@none_op.kernel
def _(xp):
    return scalar(OptionalValue(None))


@from_value_op.kernel
def _(xp, components):
    return scalar(OptionalValue(list(components)))


@has_value_op.kernel
def _(xp, optional):
    return np.bool_(_optional(optional).components is not None)


@get_value_op.kernel
def _(xp, optional, *, output_types):
    components = _optional(optional).components
    if components is None:
        raise InvalidArgumentError(None, None, "The given optional does not have a value.")
    return of_types(components, output_types)
