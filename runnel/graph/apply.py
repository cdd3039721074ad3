"""Adding an operation: convert the inputs, infer the attributes, check, append to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph import registry
from runnel.graph.conversion import (
    constant_of,
    convert_to_tensor,
    existing_tensor,
    is_plain,
)
from runnel.graph.creation_site import capture_site
from runnel.graph.dtypes import DType
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, group_arguments
from runnel.graph.signature import Argument, normalize


def apply_op(op_def: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], name: str | None) -> Any:
    """Adds an operation to the graph; returns its output, a list of them, or the operation.

    With one output argument that is not a list the result is that tensor; with several, a list
    with one entry for each; with none, the operation itself.
    """
    graph = get_default_graph()
    if len(inputs) == op_def.fixed_arity:
        op = _apply_to_tensors(graph, op_def, inputs, attrs, name)
        if op is not None:
            return op.outputs[0] if op_def.has_single_output else group_outputs(op)
    if not (inputs and type(inputs[0]) is Tensor and inputs[0].op.graph is graph):
        other = _graph_of(inputs)
        if other is not None and other is not graph:
            with other.as_default():
                return _apply_general(other, op_def, inputs, attrs, name)
    return _apply_general(graph, op_def, inputs, attrs, name)


def _apply_to_tensors(
    graph: Graph, op_def: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], name: str | None
) -> Operation | None:
    """The short path: every input is a tensor of ``graph`` of the right type.

    None when it is not; the general path then converts the inputs or explains the mistake.
    """
    numbers = []
    for tensor in inputs:
        if type(tensor) is not Tensor:
            if type(tensor) in _PYTHON_VALUES:
                return None
            existing = [existing_tensor(value) for value in inputs]
            if None in existing:
                return None
            return _apply_to_tensors(graph, op_def, existing, attrs, name)
        if tensor.op.graph is not graph:
            return None
        numbers.append(tensor.dtype.as_datatype_enum)
    for value in attrs.values():
        if type(value) not in _FEW_VALUES:
            inferred = _infer_attrs(op_def, inputs, attrs)
            break
    else:
        key = (*numbers, *attrs.items()) if attrs else tuple(numbers)
        try:
            inferred = op_def.inferred[key]
        except KeyError:
            inferred = op_def.inferred[key] = _infer_attrs(op_def, inputs, attrs)
    if inferred is None:
        return None
    complete, types = inferred
    return graph.add_op(op_def, inputs, complete, types, name, 5)


# What becomes a constant if it becomes a tensor at all.
_TENSOR = frozenset({Tensor})
_PYTHON_VALUES = frozenset({int, float, bool, list, tuple, str, bytes})

# Attributes of these types have so few values that what follows from them is kept.
_FEW_VALUES = frozenset({bool, DType})


def _infer_attrs(
    op_def: OpDef, inputs: Sequence[Tensor], attrs: dict[str, Any]
) -> tuple[dict[str, Any], list[DType]] | None:
    """All attributes and the types of the outputs, or None if the inputs need converting.

    Operations share the dictionary: it is never changed, only replaced.
    """
    types_of_inputs = _infer_types(op_def, inputs)
    if types_of_inputs is None:
        return None
    for given, value in attrs.items():
        if given in types_of_inputs and value is not types_of_inputs[given]:
            return None
    complete = {**_complete(op_def, attrs), **types_of_inputs}
    return complete, output_types(op_def, complete)


def _infer_types(op_def: OpDef, inputs: Sequence[Tensor]) -> dict[str, DType] | None:
    """The type attributes that these inputs imply, or None if they do not fit the signature."""
    inferred: dict[str, DType] = {}
    for argument, tensor in zip(op_def.inputs, inputs, strict=True):
        dtype = tensor.dtype.base_dtype
        if argument.is_ref and not tensor.dtype.is_ref_dtype:
            return None
        if argument.type_attr is None:
            if dtype is not argument.dtype:
                return None
            continue
        allowed = op_def.attributes[argument.type_attr].allowed
        if inferred.setdefault(argument.type_attr, dtype) is not dtype:
            return None
        if allowed is not None and dtype not in allowed:
            return None
    return inferred


def _graph_of(inputs: Sequence[Any]) -> Graph | None:
    found: Graph | None = None
    for value in inputs:
        for item in value if isinstance(value, list | tuple) else (value,):
            if not hasattr(item, "_as_graph_element") and not isinstance(item, Tensor):
                continue
            if item.graph is not found:
                if found is not None:
                    raise ValueError(
                        f"{item!r} is of a different graph than the other inputs; "
                        "one operation takes tensors of one graph."
                    )
                found = item.graph
    return found


def _apply_general(
    graph: Graph, op_def: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], name: str | None
) -> Any:
    if len(inputs) != len(op_def.inputs):
        wanted = ", ".join(a.name for a in op_def.inputs) or "none"
        raise TypeError(
            f"{op_def.name} takes {len(op_def.inputs)} inputs ({wanted}), not {len(inputs)}"
        )
    # Constants made of Python values are named "<op>/<argument>", as TensorFlow names them.
    if name is not None and name.endswith("/"):
        scope_name = name
    elif _TENSOR.issuperset(map(type, inputs)):
        scope_name = ""
    else:
        with graph._lock:
            scope_name = graph.unique_name(name or op_def.name) + "/"
    scopes = graph._thread.state
    outer = scopes.name, scopes.site
    if scope_name:
        scopes.name = scope_name[:-1]
    if scopes.site is None:
        scopes.site = capture_site(3)
    try:
        op = None
        if not op_def.has_list_inputs:
            inputs = _convert_plain(op_def, inputs, attrs)
            op = _apply_to_tensors(graph, op_def, inputs, attrs, scope_name or name)
        if op is None:
            op = _apply_converted(graph, op_def, inputs, attrs, scope_name or name)
    finally:
        scopes.name, scopes.site = outer
    return op.outputs[0] if op_def.has_single_output else group_outputs(op)


def _convert_plain(op_def: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> Sequence[Any]:
    """``inputs`` with tensors for Python values; what is not plain is left as it is."""
    converted: list[Any] = []
    types: dict[str, DType] = {}
    for argument, value in zip(op_def.inputs, inputs, strict=True):
        attr = argument.type_attr
        if type(value) is not Tensor:
            wanted = argument.dtype
            if wanted is None and attr is not None:
                wanted = types.get(attr) or attrs.get(attr)
            given = wanted is None or type(wanted) is DType
            if not is_plain(value) or not given or argument.is_ref:
                return inputs if not converted else [*converted, *inputs[len(converted) :]]
            try:
                hint = op_def.defaults.get(attr) if wanted is None and attr is not None else None
                value = constant_of(value, wanted, hint, argument.name)
            except (TypeError, ValueError):
                value = _convert_one(op_def, argument, value, wanted)  # explains the mistake
        converted.append(value)
        if attr is not None:
            types.setdefault(attr, value.dtype._base)
    return converted


def _apply_converted(
    graph: Graph, op_def: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], name: str | None
) -> Operation:
    """The long way: every input is converted and every attribute checked."""
    known = {key: normalize_attr(op_def, key, value) for key, value in attrs.items()}
    flat: list[Tensor] = []
    for argument, value in zip(op_def.inputs, inputs, strict=True):
        flat += _convert_argument(op_def, argument, value, known)
    for tensor in flat:
        if tensor.op.graph is not graph:
            _graph_of(inputs)  # explains inputs of different graphs
            raise ValueError(f"{tensor!r} is not an element of this graph.")
    complete = _with_defaults(op_def, known)
    return graph.add_op(op_def, flat, complete, output_types(op_def, complete), name)


def _convert_argument(
    op_def: OpDef, argument: Argument, value: Any, known: dict[str, Any]
) -> list[Tensor]:
    if not argument.is_list:
        wanted = argument.dtype or known.get(argument.type_attr or "")
        if (
            type(value) is Tensor
            and not argument.is_ref
            and (wanted is None or wanted is value.dtype._base)
        ):
            tensor = value
        else:
            tensor = _convert_one(op_def, argument, value, wanted)
        if argument.type_attr is not None and wanted is None:
            _require_allowed(op_def, argument, tensor)
            _infer(op_def, argument.type_attr, tensor.dtype._base, known)
        return [tensor]
    if not isinstance(value, list | tuple):
        raise TypeError(f"{op_def.name}: {argument.name!r} takes a list, not {value!r}")
    if argument.type_list_attr is not None:
        types = known.get(argument.type_list_attr)
        if types is not None and len(types) != len(value):
            raise ValueError(
                f"{op_def.name}: {argument.name!r} takes {len(types)} tensors, not {len(value)}"
            )
        tensors = [
            _convert_one(op_def, argument, v, types[i] if types else None)
            for i, v in enumerate(value)
        ]
        if types is None:
            _infer(op_def, argument.type_list_attr, [t.dtype.base_dtype for t in tensors], known)
        return tensors
    wanted = argument.dtype or known.get(argument.type_attr or "")
    if wanted is None:
        # Python numbers in a list take the type of the tensors beside them.
        wanted = _type_among(value)
        tensors = []
        for v in value:
            tensors.append(_convert_one(op_def, argument, v, wanted))
            wanted = wanted or tensors[0].dtype.base_dtype
        if argument.type_attr is not None and wanted is not None:
            _infer(op_def, argument.type_attr, wanted, known)
    else:
        tensors = [_convert_one(op_def, argument, v, wanted) for v in value]
    assert argument.number_attr is not None
    _infer(op_def, argument.number_attr, len(tensors), known)
    return tensors


def _type_among(values: Sequence[Any]) -> DType | None:
    """The element type of the first tensor or variable in a nested list."""
    for value in values:
        if isinstance(value, list | tuple):
            found = _type_among(value)
            if found is not None:
                return found
        elif hasattr(value, "dtype") and hasattr(value, "graph"):
            return value.dtype.base_dtype
    return None


def _convert_one(op_def: OpDef, argument: Argument, value: Any, wanted: DType | None) -> Tensor:
    hint = None
    if wanted is None and argument.type_attr is not None:
        hint = op_def.defaults.get(argument.type_attr)
    try:
        tensor = convert_to_tensor(
            value, wanted, argument.name, preferred_dtype=hint, as_ref=argument.is_ref
        )
    except (TypeError, ValueError) as error:
        if wanted is None:
            raise
        got = f"{value.dtype.name}" if isinstance(value, Tensor) else f"{type(value).__name__}"
        raise TypeError(
            f"Input {argument.name!r} of {op_def.name} must be of type {wanted.name}, "
            f"but {_describe(value)} is of type {got}. {error}"
        ) from None
    if argument.is_ref and not tensor.dtype.is_ref_dtype:
        raise TypeError(
            f"Input {argument.name!r} of {op_def.name} must be a variable, not {tensor!r}"
        )
    return tensor


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        site = value.op.creation_site()[-1].splitlines()[0]
        return f"{value.name} (created at {site})"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def _require_allowed(op_def: OpDef, argument: Argument, tensor: Tensor) -> None:
    """A TypeError that names the tensor when the op has no version for its type."""
    allowed = op_def.attributes[argument.type_attr or ""].allowed
    if allowed is not None and tensor.dtype.base_dtype not in allowed:
        raise TypeError(
            f"Input {argument.name!r} of {op_def.name} cannot be {tensor.dtype.name}, which "
            f"{_describe(tensor)} is. It must be one of: {', '.join(t.name for t in allowed)}. "
            "tf.cast converts it."
        )


def _infer(op_def: OpDef, attr: str, value: Any, known: dict[str, Any]) -> None:
    value = normalize_attr(op_def, attr, value)
    given = known.setdefault(attr, value)
    if given is not value and given != value:
        raise ValueError(f"{op_def.name}: {attr} is {given} by one input and {value} by another")


def normalize_attr(op_def: OpDef, name: str, value: Any) -> Any:
    """``value`` checked and in the form in which operations keep it."""
    attribute = op_def.attributes.get(name)
    if attribute is None:
        if name.startswith("_"):
            return value
        known = ", ".join(op_def.attributes) or "none"
        raise TypeError(f"{op_def.name} has no attribute {name!r} (it has: {known})")
    return normalize(value, attribute, op_def.name)


def _complete(op_def: OpDef, given: dict[str, Any]) -> dict[str, Any]:
    checked = {key: normalize_attr(op_def, key, value) for key, value in given.items()}
    return _with_defaults(op_def, checked)


def _with_defaults(op_def: OpDef, checked: dict[str, Any]) -> dict[str, Any]:
    complete = {**op_def.defaults, **checked}
    for name in op_def.required:
        if name not in complete:
            raise TypeError(f"{op_def.name} needs the attribute {name!r}")
    return complete


def output_types(op_def: OpDef, attrs: dict[str, Any]) -> list[DType]:
    """The element types of the outputs, flattened."""
    if op_def.has_single_output:
        return op_def.outputs[0].types(attrs)
    return [dtype for argument in op_def.outputs for dtype in argument.types(attrs)]


def group_outputs(op: Operation) -> Any:
    """The outputs as the signature groups them; the operation when there are none."""
    arguments = op.op_def.outputs
    if not arguments:
        return op
    grouped = group_arguments(arguments, op.outputs, op.attrs)
    return grouped[0] if len(grouped) == 1 else grouped


def apply_flat(
    graph: Graph,
    op_def: OpDef,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    name: str | None,
) -> Operation:
    """Adds an operation from flat inputs and explicit attributes, as a GraphDef holds them."""
    complete = _complete(op_def, attrs)
    expected: list[tuple[Argument, DType]] = []
    for argument in op_def.inputs:
        # An attribute that an old graph leaves out is that of the tensors it is about.
        if argument.type_attr is not None and len(expected) < len(inputs):
            complete.setdefault(argument.type_attr, inputs[len(expected)].dtype.base_dtype)
        try:
            expected += [(argument, dtype) for dtype in argument.types(complete)]
        except KeyError as missing:
            raise ValueError(f"{op_def.name} needs the attribute {missing}") from None
    if len(expected) != len(inputs):
        raise ValueError(
            f"{op_def.name} takes {len(expected)} inputs here, but {len(inputs)} are given"
        )
    for (argument, dtype), tensor in zip(expected, inputs, strict=True):
        if tensor.op.graph is not graph:
            raise ValueError(f"{tensor!r} is not an element of this graph.")
        if tensor.dtype.base_dtype is not dtype.base_dtype:
            raise TypeError(
                f"Input {argument.name!r} of {op_def.name} must be {dtype.name}, "
                f"but {tensor.name} is {tensor.dtype.name}"
            )
        if argument.is_ref and not tensor.dtype.is_ref_dtype:
            raise TypeError(f"Input {argument.name!r} of {op_def.name} must be a reference")
    types = output_types(op_def, complete)
    return graph.add_op(op_def, list(inputs), complete, types, name, 4)


registry.add_to_graph = apply_op
