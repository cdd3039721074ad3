"""Loops over the first axis of tensors: ``map_fn``, ``foldl``, ``foldr`` and ``scan``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.loop import while_loop
from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of


def _elements(elems: Any) -> tuple[list[Tensor], Any]:
    """The tensors of ``elems``, and the number of slices that each has."""
    tensors = [convert_to_tensor(e, name="elem") for e in flatten(elems)]
    if not tensors:
        raise ValueError("elems must hold at least one tensor")
    for tensor in tensors:
        if tensor.dims == ():
            raise ValueError(
                f"elems must be 1+ dimensional Tensors, but {tensor.name} is a scalar; the "
                "function is applied to slices along the first axis"
            )
    static = {t.dims[0] for t in tensors if t.dims is not None and t.dims[0] is not None}
    if len(static) > 1:
        raise ValueError(f"elems have different sizes along their first axis: {sorted(static)}")
    return tensors, static.pop() if static else shape_of(tensors[0])[0]


def _arrays_of(tensors: list[Tensor], count: Any, infer_shape: bool = True) -> list[TensorArray]:
    return [TensorArray(t.dtype, size=count, infer_shape=infer_shape).unstack(t) for t in tensors]


def _with_count(tensor: Tensor, count: Any) -> Tensor:
    if isinstance(count, int) and tensor.dims is not None:
        tensor.set_shape((count, *tensor.dims[1:]))
    return tensor


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` of each slice of ``elems`` along the first axis, stacked.

    ``elems`` may be a structure of tensors of the same first size. ``dtype`` is the structure of
    types that ``fn`` returns, needed if it differs from that of ``elems``.

    Example:
        >>> tf.Session().run(tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])))
        array([1, 4, 9], dtype=int32)
    """
    _require_callable(fn)
    with name_scope(name, "map", [t for t in flatten(elems) if isinstance(t, Tensor)]):
        tensors, count = _elements(elems)
        structure = pack_as(elems, tensors)
        types = pack_as(elems, [t.dtype for t in tensors]) if dtype is None else dtype
        inputs = _arrays_of(tensors, count, infer_shape)
        outputs = [TensorArray(t, size=count, infer_shape=infer_shape) for t in flatten(types)]

        known = isinstance(count, int)

        def body(i: Tensor, arrays: list[TensorArray]) -> Any:
            slices = pack_as(structure, [array.read(i) for array in inputs])
            skip_op_ids(11 if known else 9)  # TensorFlow 1.15 counts the iterations
            result = fn(slices)
            require_same(types, result, ("dtype", "the result of fn"))
            written = [a.write(i, v) for a, v in zip(arrays, flatten(result), strict=True)]
            return i + 1, written

        _, arrays = while_loop(
            lambda i, _: i < count,
            body,
            (0, outputs),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=None,
        )
        skip_op_ids(2 if known else 3)
        return pack_as(types, [_with_count(array.stack(), count) for array in arrays])


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(... fn(fn(initializer, elems[0]), elems[1]) ...)``; the first slice begins by default.

    Example:
        >>> tf.Session().run(tf.foldl(lambda total, x: total + x, tf.constant([1, 2, 3])))
        6
    """
    return _fold(
        fn, elems, initializer, False, parallel_iterations, back_prop, swap_memory, name, "foldl"
    )


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """:func:`foldl` from the last slice to the first."""
    return _fold(
        fn, elems, initializer, True, parallel_iterations, back_prop, swap_memory, name, "foldr"
    )


def _fold(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    backwards: bool,
    parallel_iterations: int,
    back_prop: bool,
    swap_memory: bool,
    name: str | None,
    default_name: str,
) -> Any:
    _require_callable(fn)
    with name_scope(name, default_name, [t for t in flatten(elems) if isinstance(t, Tensor)]):
        tensors, count = _elements(elems)
        structure = pack_as(elems, tensors)
        arrays = _arrays_of(tensors, count)

        def take(index: Any) -> Any:
            return pack_as(structure, [array.read(index) for array in arrays])

        known = isinstance(count, int)
        first = count - 1 if backwards else 0
        if initializer is None:
            _require_elements(count)
            start, value = (count - 2 if backwards else 1), take(first)
        else:
            start = first
            value = pack_as(initializer, [convert_to_tensor(v) for v in flatten(initializer)])

        def body(i: Tensor, accumulated: Any) -> Any:
            slices = take(i)
            skip_op_ids((11 if known else 8) if backwards else (9 if known else 7))
            return (i - 1 if backwards else i + 1), fn(accumulated, slices)

        _, result = while_loop(
            (lambda i, _: i >= 0) if backwards else (lambda i, _: i < count),
            body,
            (start, value),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        skip_op_ids(2 if backwards else 4)
        return result


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Every value that :func:`foldl` (or, with ``reverse``, :func:`foldr`) goes through, stacked.

    Example:
        >>> tf.Session().run(tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3])))
        array([1, 3, 6], dtype=int32)
    """
    _require_callable(fn)
    with name_scope(name, "scan", [t for t in flatten(elems) if isinstance(t, Tensor)]):
        tensors, count = _elements(elems)
        structure = pack_as(elems, tensors)
        inputs = _arrays_of(tensors, count, infer_shape)

        def take(index: Any) -> Any:
            return pack_as(structure, [array.read(index) for array in inputs])

        known = isinstance(count, int)
        last = count - 1
        if initializer is None:
            _require_elements(count)
            value = take(last if reverse else 0)
            values = flatten(value)
            start = count - 2 if reverse else 1
        else:
            values = [convert_to_tensor(v) for v in flatten(initializer)]
            value = pack_as(initializer, values)
            start = last if reverse else 0
        outputs = [
            TensorArray(
                v.dtype,
                size=count,
                infer_shape=infer_shape,
                element_shape=TensorShape(v.dims) if infer_shape else None,
            )
            for v in values
        ]
        if initializer is None:
            place = last if reverse else 0
            outputs = [a.write(place, v) for a, v in zip(outputs, values, strict=True)]

        def body(i: Tensor, accumulated: Any, arrays: list[TensorArray]) -> Any:
            slices = take(i)
            skip_op_ids(11 if known else 7)
            result = fn(accumulated, slices)
            require_same(value, result, ("initializer", "the result of fn"))
            written = [a.write(i, v) for a, v in zip(arrays, flatten(result), strict=True)]
            return (i - 1 if reverse else i + 1), result, written

        _, _, arrays = while_loop(
            (lambda i, _, __: i >= 0) if reverse else (lambda i, _, __: i < count),
            body,
            (start, value, outputs),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        skip_op_ids(2 if known else 3)
        return pack_as(value, [_with_count(array.stack(), count) for array in arrays])


def _require_callable(fn: Any) -> None:
    if not callable(fn):
        raise TypeError("fn must be callable.")


def _require_elements(count: Any) -> None:
    if count == 0:
        raise ValueError("elems must hold at least one slice where there is no initializer")
