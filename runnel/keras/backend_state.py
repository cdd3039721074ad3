"""What ``tf.keras.backend`` keeps: its settings, its session, and the values of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.autodiff.gradients import gradients as _gradients
from runnel.graph.default_session import get_default_session
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph, reset_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.keras.layer import forget_names, unique_name
from runnel.keras.tracking import tracked_variables
from runnel.ops import arithmetic
from runnel.ops.array_shape import shape as shape
from runnel.ops.assign import assign, assign_add, assign_sub
from runnel.ops.constants import placeholder as _placeholder
from runnel.ops.rounding import round as round  # noqa: A004 (TensorFlow's name)
from runnel.ops.sparse.dense import sparse_tensor_to_dense
from runnel.sessions import Session
from runnel.variables.initialization import global_variables, variables_initializer
from runnel.variables.variable import Variable

_settings: dict[str, Any] = {
    "epsilon": 1e-7,
    "floatx": "float32",
    "form": "channels_last",
    "manual": False,
}
_own_session: list[Any] = []


# Settings and the session ---------------------------------------------------------------------


def backend() -> str:
    """The name of what Keras runs on."""
    return "tensorflow"


def epsilon() -> float:
    """The small number that keeps logarithms and quotients finite."""
    return float(_settings["epsilon"])


def set_epsilon(value: float) -> None:
    """Sets :func:`epsilon`."""
    _settings["epsilon"] = value


def floatx() -> str:
    """The type of floating-point numbers that are made without one."""
    return str(_settings["floatx"])


def set_floatx(value: str) -> None:
    """Sets :func:`floatx`: float16, float32 or float64."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"floatx must be float16, float32 or float64, not {value!r}")
    _settings["floatx"] = value


def image_data_format() -> str:
    """Where the channels of images are: ``channels_last``."""
    return str(_settings["form"])


def set_image_data_format(data_format: str) -> None:
    """Takes ``channels_last`` alone: layers take others by their ``data_format``."""
    if data_format != "channels_last":
        raise ValueError(
            f"Layers put channels last unless told; give them data_format={data_format!r}"
        )


def get_session(op_input_list: Any = ()) -> Any:
    """The default session; else the one of :func:`set_session`, or a new one of the graph.

    Variables that have no value yet are initialized, unless
    :func:`manual_variable_initialization` says that the program does so.
    """
    session = get_default_session() or (_own_session[-1] if _own_session else None)
    if session is None or session.graph is not get_default_graph() and not get_default_session():
        session = Session()
        _own_session[:] = [session]
    if not _settings["manual"]:
        with session.graph.as_default():
            _initialize(session)
    return session


def _initialize(session: Any) -> None:
    every = [*global_variables(), *tracked_variables()]
    unseen = [v for v in every if not getattr(v, "_keras_initialized", False)]
    if not unseen:
        return
    from runnel.ops.assign import is_variable_initialized

    variables = list({id(v): v for v in unseen}.values())
    known = session.run([is_variable_initialized(v) for v in variables])
    fresh = [v for v, is_known in zip(variables, known, strict=True) if not is_known]
    for variable in variables:
        variable._keras_initialized = True
    session.run(variables_initializer(fresh))


def manual_variable_initialization(value: bool) -> None:
    """With True, the program initializes variables itself."""
    _settings["manual"] = value


def set_session(session: Any) -> None:
    """Makes ``session`` the one that :func:`get_session` and :func:`eval` use."""
    _own_session[:] = [session]


def clear_session() -> None:
    """A new default graph, whose layers are counted from the start; the old session is closed."""
    for session in _own_session:
        session.close()
    _own_session.clear()
    reset_default_graph()


def get_uid(prefix: str = "") -> int:
    """The number of the next nameless layer with this prefix, from 1."""
    made = unique_name(f"__uid_{prefix}")
    return int(made.rpartition("_")[2]) + 1 if made != f"__uid_{prefix}" else 1


def reset_uids() -> None:
    """Counts nameless layers of the default graph from the start."""
    forget_names()


# Variables and values -------------------------------------------------------------------------


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable that starts as ``value``."""
    kind = as_dtype(dtype or floatx())
    return Variable(value, dtype=kind, name=name, constraint=constraint, use_resource=True)


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
) -> Any:
    """A placeholder of a shape, or of ``ndim`` unknown dimensions."""
    dims = [None] * ndim if shape is None and ndim else shape
    if sparse:
        from runnel.ops.sparse.placeholder import sparse_placeholder

        return sparse_placeholder(dtype or floatx(), dims, name=name)
    return _placeholder(dtype or floatx(), dims, name=name)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    return get_session().run(x)


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of several."""
    return get_session().run(list(tensors)) if tensors else []  # type: ignore[no-any-return]


def set_value(x: Any, value: Any) -> None:
    """Sets a variable."""
    batch_set_value([(x, value)])


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Sets several variables: pairs of a variable and an array."""
    session = get_session()
    feeds = {}
    for x, value in tuples:
        array = np.asarray(value, x.dtype.base_dtype.as_numpy_dtype)
        feeds[x.initializer.inputs[1]] = array.reshape(x.shape.as_list())
    # Two variables may begin with the same tensor; then each takes a step of its own.
    if len(feeds) == len(tuples):
        session.run([x.initializer for x, _ in tuples], feeds)
        return
    for x, value in tuples:
        x.load(np.asarray(value, x.dtype.base_dtype.as_numpy_dtype), session)


def eval(x: Any) -> Any:  # noqa: A001 (TensorFlow's name)
    """The value of ``x``, in :func:`get_session`."""
    return get_session().run(x)


def update(x: Any, new_x: Any) -> Any:
    """Sets ``x`` when it is run."""
    return assign(x, new_x)


def update_add(x: Any, increment: Any) -> Any:
    """Adds to ``x`` when it is run."""
    return assign_add(x, increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """Takes from ``x`` when it is run."""
    return assign_sub(x, decrement)


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """Moves ``x`` towards ``value`` when it is run, by ``1 - momentum`` of the way."""
    return assign_sub(x, arithmetic.multiply(arithmetic.subtract(x, value), 1 - momentum))


class Function:
    """What :func:`function` makes: called with a list of arrays, it gives a list of arrays."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any = ()) -> None:
        self._single = not isinstance(outputs, list | tuple)
        self.inputs = list(inputs)
        self.outputs = [outputs] if self._single else list(outputs)
        self.updates = [assign(*u) if isinstance(u, tuple) else u for u in updates or ()]

    def __call__(self, inputs: Any) -> Any:
        if len(inputs) != len(self.inputs):
            raise ValueError(f"Expected {len(self.inputs)} arrays, but got {len(inputs)}")
        pairs = zip(self.inputs, inputs, strict=True)
        # A placeholder such as the learning phase may be 0 or 1 by itself.
        feeds = {x: value for x, value in pairs if isinstance(x, Tensor | SparseTensor)}
        values, _ = get_session().run([self.outputs, self.updates], feeds)
        return values[0] if self._single else values


def function(inputs: Any, outputs: Any, updates: Any = None, name: str | None = None) -> Function:
    """A Python function that runs ``outputs`` with ``inputs`` fed.

    Example:
        >>> double = tf.keras.backend.function([x], [x * 2])
        >>> double([np.ones(2)])
    """
    return Function(inputs, outputs, updates)


def gradients(loss: Any, variables: Any) -> list[Any]:
    """The derivatives of ``loss``."""
    return _gradients(loss, variables)


def is_sparse(tensor: Any) -> bool:
    """True for a sparse tensor."""
    return isinstance(tensor, SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one."""
    return sparse_tensor_to_dense(tensor) if is_sparse(tensor) else tensor
