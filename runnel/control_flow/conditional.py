"""``tf.cond``, ``tf.case`` and ``tf.switch_case``: running one of several branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.control_flow.tensor_array_flow import restore_arrays
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.control import identity
from runnel.ops.control_flow import merge, switch


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """``true_fn()`` if ``pred`` is true, else ``false_fn()``; only that branch runs.

    Both return the same structure of tensors, of the same types. An operation as a result gives
    a tensor that is there when the operation has run. What is made outside the two functions runs
    in any case. Unless ``strict``, a list of one result is unpacked.

    Example:
        >>> x = tf.constant(-2.0)
        >>> tf.Session().run(tf.cond(x < 0, lambda: -x, lambda: x))
        2.0
    """
    true_fn = _one_of(true_fn, fn1, "true_fn", "fn1")
    false_fn = _one_of(false_fn, fn2, "false_fn", "fn2")
    with name_scope(name, "cond", [pred]):
        for function, label in ((true_fn, "true_fn"), (false_fn, "false_fn")):
            if not callable(function):
                raise TypeError(f"{label} must be callable.")
        predicate = _as_predicate(pred)
        graph = get_default_graph()
        when_false, when_true = switch(predicate, predicate)
        pivot_true = identity(when_true, name="switch_t")
        pivot_false = identity(when_false, name="switch_f")
        predicate = identity(predicate, name="pred_id")
        for tensor in (when_true, when_false, pivot_true, pivot_false, predicate):
            graph.prevent_fetching(tensor.op)
        context_t, original_t, true_results = _branch(predicate, pivot_true, 1, true_fn, "true_fn")
        context_f, original_f, false_results = _branch(
            predicate, pivot_false, 0, false_fn, "false_fn"
        )
        if not strict:
            original_t, original_f = _unpacked(original_t), _unpacked(original_f)
        require_same(original_t, original_f, ("The results of true_fn", "of false_fn"))
        if not true_results:
            raise ValueError("true_fn and false_fn must return at least one result.")
        for one, other in zip(true_results, false_results, strict=True):
            if one.dtype.base_dtype is not other.dtype.base_dtype:
                raise ValueError(
                    "Outputs of true_fn and false_fn must have the same type, but "
                    f"{one.name} is {one.dtype.name} and {other.name} is {other.dtype.name}."
                )
        merged = [merge([f, t])[0] for f, t in zip(false_results, true_results, strict=True)]
        if context_t.outer_context is None:
            graph.add_to_collection(GraphKeys.COND_CONTEXT, context_t)
            graph.add_to_collection(GraphKeys.COND_CONTEXT, context_f)
        merged = restore_arrays(flatten(original_t), merged)
        result = pack_as(original_t, merged)
        return result if strict else _unpacked(result)


def _one_of(function: Any, old: Any, name: str, old_name: str) -> Any:
    if old is not None:
        if function is not None:
            raise TypeError(f"cond(): {name} and {old_name} may not be set simultaneously.")
        return old
    if function is None:
        raise TypeError(f"cond(): {name} argument required")
    return function


def _as_predicate(pred: Any) -> Tensor:
    if isinstance(pred, bool):
        raise TypeError(
            "pred must not be a Python bool: it is known while the graph is built, so Python's "
            "`if` decides. For a constant in the graph use tf.constant(pred)."
        )
    tensor = convert_to_tensor(pred, name="pred")
    if tensor.dtype.name != "bool":
        raise TypeError(
            f"pred must be a bool, but {tensor.name} is {tensor.dtype.name}; "
            "compare it with something, e.g. tf.not_equal(x, 0)"
        )
    if tensor.dims not in ((), None):
        raise ValueError(
            f"pred must be a scalar, but {tensor.name} has shape {format_dims(tensor.dims)}; "
            "tf.reduce_any or tf.reduce_all makes one of many"
        )
    return tensor


def _branch(
    pred: Tensor, pivot: Tensor, branch: int, function: Any, label: str
) -> tuple[CondContext, Any, list[Tensor]]:
    context = CondContext(pred, pivot, branch)
    context.Enter()
    try:
        original, results = context.build_branch(function)
        if original is None:
            raise ValueError(f"{label} must have a return value.")
        context.ExitResult(results)
    finally:
        context.Exit()
    return context, original, results


def _unpacked(value: Any) -> Any:
    single = isinstance(value, list | tuple) and len(value) == 1
    return value[0] if single and not isinstance(value, IndexedSlices) else value


# Several branches -----------------------------------------------------------------------------


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate is true, else of ``default``.

    ``pred_fn_pairs`` is a list of (predicate, function), or a dict. With ``exclusive`` it is an
    error if several predicates are true; without a ``default``, if none is.

    Example:
        >>> x = tf.constant(3)
        >>> y = tf.case([(x < 2, lambda: tf.constant(1)), (x < 5, lambda: tf.constant(2))],
        ...             default=lambda: tf.constant(0))
        >>> tf.Session().run(y)
        2
    """
    pairs = _checked_pairs(pred_fn_pairs, exclusive)
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        if default is None:
            default, pairs = _last_as_default(pairs, exclusive, name)
        elif not callable(default):
            raise TypeError("default must be callable.")
        result: Callable[[], Any] = default
        for pred, function in reversed(pairs):
            result = _either(pred, function, result, strict)
        if exclusive and len(pairs) > 1:
            with get_default_graph().control_dependencies([_at_most_one(pairs, name)]):
                return result()
        return result()


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the function that ``branch_index``, an integer, names.

    ``branch_fns`` is a list of functions, or a dict or a list of pairs (number, function). An index
    that names none runs ``default``, or the function with the largest number.

    Example:
        >>> tf.Session().run(tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20]))
        20
    """
    from runnel.ops.comparison import equal

    branches = _numbered(branch_fns)
    last = branches.pop(max(branches)) if default is None else default
    if not callable(last):
        raise TypeError("default must be callable.")
    with name_scope(name, "switch_case", [branch_index]):
        index = convert_to_tensor(branch_index, name="branch_index")
        if index.dtype.base_dtype.name != "int32":
            raise TypeError(f"branch_index must be of type int32, not {index.dtype.name}")
        result: Callable[[], Any] = last
        for number, function in sorted(branches.items(), reverse=True):
            result = _either(equal(index, number), function, result, False)
        return _as_tensors(result()) if not branches else result()


def _as_tensors(value: Any) -> Any:
    return convert_to_tensor(value) if not isinstance(value, list | tuple | dict) else value


def _numbered(branch_fns: Any) -> dict[int, Callable[[], Any]]:
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    elif isinstance(branch_fns, list | tuple) and all(map(callable, branch_fns)):
        pairs = list(enumerate(branch_fns))
    elif isinstance(branch_fns, list | tuple):
        pairs = list(branch_fns)
    else:
        raise TypeError("branch_fns must be a dict, list, or tuple")
    if not pairs:
        raise ValueError("branch_fns must not be empty")
    found: dict[int, Callable[[], Any]] = {}
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "Each entry in branch_fns must be a function, or a pair (int, function)"
            )
        number, function = pair
        if not isinstance(number, int) or not callable(function):
            raise TypeError("Each entry in branch_fns must be a pair (int, function)")
        if number in found:
            raise ValueError(f"branch_fns has two functions for {number}")
        found[number] = function
    return found


def _either(pred: Any, function: Any, otherwise: Any, strict: bool) -> Callable[[], Any]:
    return lambda: cond(pred, function, otherwise, strict=strict)


def _checked_pairs(pairs: Any, exclusive: bool) -> list[tuple[Tensor, Callable[[], Any]]]:
    if not isinstance(pairs, list | tuple | dict):
        raise TypeError("pred_fn_pairs must be a list, tuple, or dict")
    if isinstance(pairs, dict):
        if not exclusive and len(pairs) > 1 and type(pairs) is dict:
            items = sorted(pairs.items(), key=lambda item: getattr(item[0], "name", ""))
        else:
            items = list(pairs.items())
    else:
        items = list(pairs)
    for pair in items:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple.")
        pred, function = pair
        if not isinstance(pred, Tensor):
            raise TypeError(f"pred must be a Tensor, got: {pred!r}")
        if pred.dtype.name != "bool":
            raise TypeError(f"pred must be Tensor of type bool: {pred.name}")
        if not callable(function):
            raise TypeError(f"fn for pred {pred.name} must be callable.")
    return items


def _last_as_default(
    pairs: list[tuple[Tensor, Any]], exclusive: bool, name: str
) -> tuple[Callable[[], Any], list[tuple[Tensor, Any]]]:
    """Without a default, the last function is run, after checking that some predicate holds."""
    from runnel.ops.checks import Assert
    from runnel.ops.joining import stack
    from runnel.ops.reduce_functions import reduce_any

    if not pairs:
        raise ValueError("case needs at least one (pred, fn) pair or a default")
    preds = [pred for pred, _ in pairs]
    names = ", ".join(pred.name for pred in preds)

    def checked() -> Any:
        message = f"None of conditions evaluated as True. Conditions: ({names}), Values:"
        gathered = stack(preds)
        check = Assert(reduce_any(gathered), [message, gathered], name="assert_one_true")
        with get_default_graph().control_dependencies([check]):
            return pairs[-1][1]()

    return checked, pairs[:-1]


def _at_most_one(pairs: list[tuple[Tensor, Any]], name: str) -> Operation:
    from runnel.ops.casting import cast
    from runnel.ops.checks import Assert
    from runnel.ops.comparison import less
    from runnel.ops.joining import stack
    from runnel.ops.reduce_functions import reduce_sum

    preds = stack([pred for pred, _ in pairs], name="preds_c")
    count = reduce_sum(cast(preds, "int32"), name="num_true_conds")
    names = ", ".join(pred.name for pred, _ in pairs)
    message = (
        "More than one condition evaluated as True but exclusive=True. "
        f"Conditions: ({names}), Values:"
    )
    return Assert(less(count, 2, name="at_most_one_true_cond"), [message, preds])
