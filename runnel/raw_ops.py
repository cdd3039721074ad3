"""``tf.raw_ops``: each type of operation as a function of its inputs and attributes, by name.

Example:
    >>> dx = tf.raw_ops.ReluGrad(gradients=dy, features=x)
"""

from __future__ import annotations

import functools
import re
import typing  # an operation has the name Any
from collections import namedtuple
from collections.abc import Callable
from inspect import Parameter, Signature

from runnel.graph.registry import OpDef, find_op_def, registered_ops
from runnel.graph.signature import REQUIRED

_PUBLIC_NAMES = {
    **dict.fromkeys(["reduction_indices", "squeeze_dims", "split_dim", "dim"], "axis"),
    "Select.t": "x",
    "Select.e": "y",
    "Where.input": "condition",
    "ReduceJoin.reduction_indices": "reduction_indices",
    "SparseSplit.split_dim": "split_dim",
}
"""Inputs and attributes that TensorFlow's functions call otherwise than its graphs do."""

_ADDED_LATER = re.compile(
    r"(MaxPool(Grad)?|DepthwiseConv2dNative\w*)\.explicit_paddings|.*\.exponential_avg_factor"
)
"""Attributes that TensorFlow 1.15 does not have: they come last, whoever counts arguments."""


def _public_name(op_def: OpDef, name: str) -> str:
    return _PUBLIC_NAMES.get(f"{op_def.name}.{name}") or _PUBLIC_NAMES.get(name, name)


def signature_of(op_def: OpDef) -> Signature:
    """The inputs, then the attributes that do not follow from them: first those without default."""
    implied = {
        attribute
        for argument in op_def.inputs
        for attribute in (argument.type_attr, argument.number_attr, argument.type_list_attr)
    }
    own = [a for a in op_def.attributes.values() if a.name not in implied]
    needed = [a.name for a in own if a.default is REQUIRED]
    others = [a.name for a in own if a.default is not REQUIRED]
    others.sort(key=lambda name: bool(_ADDED_LATER.fullmatch(f"{op_def.name}.{name}")))
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return Signature(
        [
            *(
                Parameter(_public_name(op_def, name), kind)
                for name in [*(argument.name for argument in op_def.inputs), *needed]
            ),
            *(
                Parameter(_public_name(op_def, name), kind, default=None)
                for name in [*others, "name"]
            ),
        ]
    )


def _together(op_def: OpDef) -> Callable[..., typing.Any] | None:
    """Makes one value of several outputs, with their names; None where there is only one."""
    if len(op_def.outputs) < 2:
        return None
    names = [output.name for output in op_def.outputs]
    made: typing.Any = namedtuple(op_def.name, names, rename=True)  # type: ignore[misc]
    return made


@functools.cache
def function_of(op_type: str) -> Callable[..., typing.Any] | None:
    """What adds an operation of the type to the default graph; None if there is no such type.

    An attribute that is None has its default. Several outputs are a named tuple.
    """
    op_def = find_op_def(op_type)
    if op_def is None:
        return None
    signature = signature_of(op_def)
    input_names = [_public_name(op_def, argument.name) for argument in op_def.inputs]
    attr_names = {_public_name(op_def, name): name for name in op_def.attributes}
    together = _together(op_def)

    def operation(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{op_type}{signature}: {error}") from None
        inputs = [given.pop(name) for name in input_names]
        name = given.pop("name", None)
        attrs = {attr_names[key]: value for key, value in given.items() if value is not None}
        made = op_def(*inputs, name=name, **attrs)
        return made if together is None else together(*made)

    operation.__name__ = operation.__qualname__ = op_type
    operation.__doc__ = f"Adds an operation {op_type} to the default graph."
    operation.__signature__ = signature  # type: ignore[attr-defined]
    return operation


@functools.cache
def _by_name(op_type: str) -> Callable[..., typing.Any] | None:
    function = function_of(op_type)
    if function is None:
        return None

    @functools.wraps(function)
    def by_name(**kwargs: typing.Any) -> typing.Any:
        return function(**kwargs)

    return by_name


def generated_name(op_type: str) -> str:
    """The name of the function that TensorFlow generates: ``relu_grad`` for ``ReluGrad``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])", "_", op_type).lower()


def __getattr__(name: str) -> typing.Any:
    found = None if name.startswith("_") else _by_name(name)
    if found is None:
        raise AttributeError(f"runnel has no type of operation {name!r}; see dir(tf.raw_ops)")
    return found


def __dir__() -> list[str]:
    return [name for name in registered_ops() if not name.startswith("_")]
