"""Calling Python functions from a graph.

The graph holds a token that names the function in this process; a graph that is loaded
elsewhere finds no function under it and says so. Nothing is ever pickled.
"""

from __future__ import annotations

import itertools
import secrets
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.apply import apply_flat
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.registry import OpDef, register_op
from runnel.step_time import LeftBehind


class _Function:
    """A registered function; the graphs that call it keep it alive."""

    __slots__ = ("call", "__weakref__")

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class _FunctionsOfGraph(list[_Function]):
    """The functions that a graph keeps alive."""


_functions: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_PROCESS = secrets.token_hex(8)
"""A graph of another process must not find a function of this one by chance."""


def _register(name: str, stateful: bool) -> OpDef:
    op_def = register_op(
        name,
        inputs="input: Tin",
        outputs="output: Tout",
        attrs=["token: string", "Tin: list(type) >= 0", "Tout: list(type) >= 0"],
        stateful=stateful,
        host=True,
        holds_thread=True,
        differentiable=False,
    )

    @op_def.shape
    def _(inputs, *, Tout):  # noqa: N803 (TensorFlow's attribute name)
        return [None] * len(Tout)

    @op_def.kernel
    def _(xp, inputs, *, token, Tout):  # noqa: N803 (TensorFlow's attribute name)
        return LeftBehind().result(_call, token, inputs, Tout)

    return op_def


py_func_op = _register("PyFunc", stateful=True)
py_func_stateless_op = _register("PyFuncStateless", stateful=False)


def _call(token: str, inputs: Sequence[Any], types: Sequence[DType]) -> list[np.ndarray]:
    function = _functions.get(token)
    if function is None:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"No Python function is registered as {token!r} in this process. A graph that calls "
            "Python functions can only run in the process that built it: place the call on a "
            "task of that process.",
        )
    # Copies: the function may write into its arguments, which other operations share.
    arguments = [np.array(x)[()] if np.ndim(x) == 0 else np.array(x) for x in inputs]
    try:
        result = function.call(*arguments)
    except Exception as error:
        raise translated(error) from error
    if result is None:
        values = []
    else:
        values = list(result) if isinstance(result, list | tuple) else [result]
        if isinstance(result, list) and len(types) == 1:
            values = [result] if len(result) != 1 else values
    if len(values) != len(types):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{token} returns {len(values)} values, but expects to see {len(types)} values.",
        )
    return [_converted(v, t, i, token) for i, (v, t) in enumerate(zip(values, types, strict=True))]


def _converted(value: Any, dtype: DType, index: int, token: str) -> np.ndarray:
    if dtype.np_dtype == object:
        from runnel.graph.conversion import make_array

        return make_array(value, dtype)
    exact = isinstance(value, np.ndarray | np.generic)
    array = np.asarray(value)
    if array.dtype != dtype.np_dtype:
        if exact or not _same_kind(array, dtype):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{index}-th value returned by {token} is {array.dtype.name}, "
                f"but expects {dtype.name}",
            )
        array = array.astype(dtype.np_dtype)  # Python numbers have no width of their own
    # The function may keep what it returned and change it later.
    return array.copy() if array is value else array


def _same_kind(array: np.ndarray, dtype: DType) -> bool:
    rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    target = 2 if dtype.is_floating else rank.get(dtype.np_dtype.kind, 4)
    return rank.get(array.dtype.kind, 9) <= target


def translated(error: Exception) -> errors.OpError:
    """The error of a step in which a Python function raised ``error``."""
    kinds: list[tuple[Any, type[errors.OpError]]] = [
        ((ValueError, TypeError), errors.InvalidArgumentError),
        (StopIteration, errors.OutOfRangeError),
        (MemoryError, errors.ResourceExhaustedError),
        (NotImplementedError, errors.UnimplementedError),
    ]
    if isinstance(error, errors.OpError):
        return type(error)(None, None, error.message)
    kind = next((k for types, k in kinds if isinstance(error, types)), errors.UnknownError)
    # The function's own frames: the first is _call above.
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    shown = "".join(traceback.format_exception(type(error), error, frames))
    return kind(None, None, f"{type(error).__name__}: {error}\n{shown}")


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 (TensorFlow's name)
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """The result of ``func``, called with NumPy arrays whenever the step needs it.

    ``Tout`` is the type of the result, or a list of types for several. A function that always
    gives the same result for the same input may be declared with ``stateful=False``.

    The thread that runs the step calls ``func``, and only Ctrl-C stops it there. If the step has a
    deadline (``tf.RunOptions(timeout_in_ms=...)``), another thread calls it. At the deadline the
    step fails, and ``func`` goes on alone: what it changes outside of the graph still happens, what
    it returns is dropped.

    Example:
        >>> y = tf.py_func(np.sinh, [x], tf.float32)
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func).__name__}")
    several = isinstance(Tout, list | tuple)
    types = [as_dtype(t).base_dtype for t in (Tout if several else [Tout])]
    graph = get_default_graph()
    tensors = [convert_to_tensor(value) for value in inp]
    if tensors:
        graph = tensors[0].graph
    token = f"pyfunc_{_PROCESS}_{next(_numbers)}"
    function = _functions[token] = _Function(func)
    # On the graph itself, so that a closure over its tensors does not keep both alive forever.
    graph.attached(_FunctionsOfGraph).append(function)
    op_def = py_func_op if stateful else py_func_stateless_op
    attrs = {"token": token, "Tin": [t.dtype.base_dtype for t in tensors], "Tout": types}
    op = apply_flat(graph, op_def, tensors, attrs, name)
    if not types:
        return op
    return list(op.outputs) if several else op.outputs[0]


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803 (TensorFlow's name)
    name: str | None = None,
) -> Any:
    """The result of ``func``, called with NumPy arrays; as a stateful :func:`py_func`."""
    return py_func(func, inp, Tout, stateful=True, name=name)
