"""``tf.nn.rnn_cell.RNNCell``: one step of a recurrent network."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import as_dims, as_shape, dimension_value
from runnel.layers.base import Layer, variable_is_trainable
from runnel.layers.by_name import as_activation
from runnel.nn.rnn_cell.batch_shape import batch_shape, static_batch_shape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.elementwise import tanh
from runnel.ops.fill import zeros
from runnel.variables.variable_scope import get_variable_scope, variable_scope


class RNNCell(Layer):
    """A function from an input and a state to an output and the next state.

    A subclass has the properties ``state_size`` and ``output_size`` (an integer, a ``TensorShape``,
    or a structure of those, without the batch) and a method ``call(inputs, state)`` that returns
    ``(output, new_state)``. Variables that ``call`` gets with ``tf.get_variable`` are the cell's.

    Example:
        >>> class Counter(tf.nn.rnn_cell.RNNCell):
        ...     state_size = output_size = 1
        ...     def call(self, inputs, state):
        ...         return state, state + 1.0
        >>> output, state = Counter()(tf.ones([2, 3]), tf.zeros([2, 1]))
    """

    _getter_scope: Any = None

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; returns the output and the next state.

        ``inputs`` has shape [batch, size], ``state`` the structure of ``state_size`` with shapes
        [batch, size]. Variables are made in ``scope`` when the cell is first called.
        """
        if scope is not None:
            with variable_scope(scope, custom_getter=self._own_variable) as opened:
                return super().__call__(inputs, state, scope=opened)
        if self._getter_scope is None:
            self._getter_scope = variable_scope(
                get_variable_scope(), custom_getter=self._own_variable
            )
        with self._getter_scope:
            return super().__call__(inputs, state)

    def _own_variable(self, getter: Any, *args: Any, **kwargs: Any) -> Any:
        """A custom getter that remembers the variables that the cell gets."""
        variable = getter(*args, **kwargs)
        trainable = variable_is_trainable(variable)
        known = self._trainable_weights if trainable else self._non_trainable_weights
        if not any(variable is found for found in known):
            known.append(variable)
        return variable

    @property
    def state_size(self) -> Any:
        """The size(s) of the state."""
        raise NotImplementedError(f"{type(self).__name__} must define state_size")

    @property
    def output_size(self) -> Any:
        """The size(s) of the output."""
        raise NotImplementedError(f"{type(self).__name__} must define output_size")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros: ``state_size`` with tensors of shape [batch_size, size]."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return zero_state_of(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """The state to start from, for a batch of ``inputs`` or of the given size and type."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            batch_size, dtype = _agreed_batch(inputs, batch_size, dtype)
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell whose variables are made in ``build``, with :meth:`add_weight`."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kw: Any) -> Any:
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kw)


def zero_state_of(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """A state of zeros: ``state_size`` with tensors of shape [batch_size, size]."""
    return map_leaves(lambda size: _zeros(batch_size, size, dtype), state_size)


def require_cell(name: str, cell: Any) -> None:
    """Raises a TypeError that says what ``cell`` lacks to be a cell."""
    missing = [
        what
        for what, present in (
            ("'output_size' property is missing", _has(cell, "output_size")),
            ("'state_size' property is missing", _has(cell, "state_size")),
            (
                "either 'zero_state' or 'get_initial_state' method is required",
                _has(cell, "zero_state") or _has(cell, "get_initial_state"),
            ),
            ("is not callable", callable(cell)),
        )
        if not present
    ]
    if missing:
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: {', '.join(missing)}.")


def cell_activation(given: Any) -> Any:
    """The activation of a cell: tanh unless a function or a name is given."""
    return (as_activation(given) or _linear) if given else tanh


def require_floats(*structures: Any) -> None:
    """Cells compute with floating-point (or complex) numbers only."""
    for leaf in (leaf for structure in structures for leaf in flatten(structure)):
        dtype = None if leaf is None else as_dtype(getattr(leaf, "dtype", leaf))
        if dtype is not None and not (dtype.is_floating or dtype.is_complex):
            raise ValueError(
                f"An RNN cell needs floating-point inputs and states, not {dtype.name}; tf.cast "
                "converts them"
            )


def require_depth(input_shape: Any) -> int:
    """The size of the last dimension of a cell's inputs."""
    dims = as_dims(input_shape)
    if not dims or dims[-1] is None:
        raise ValueError(
            "Expected inputs.shape[-1] to be known, but the inputs have shape "
            f"{as_shape(input_shape)}"
        )
    return dims[-1]


def _linear(x: Any) -> Any:
    return x


def _has(thing: Any, name: str) -> bool:
    try:
        getattr(thing, name)
    except AttributeError:
        return False
    except NotImplementedError:
        return True
    return True


def _zeros(batch_size: Any, size: Any, dtype: Any) -> Tensor:
    made = zeros(batch_shape(batch_size, size), dtype)
    skip_op_ids(3 if isinstance(batch_size, Tensor) else 2)  # the static shape, as tensors
    made.set_shape(static_batch_shape(batch_size, size))
    return made


def _agreed_batch(inputs: Tensor, batch_size: Any, dtype: Any) -> tuple[Any, Any]:
    """The batch size and type of ``inputs``, which must be those given, if any are."""
    static = inputs.dims[0] if inputs.dims else None
    if batch_size is not None:
        given = constant_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
        given = None if given is None else dimension_value(given)
        if given != static:
            raise ValueError(
                f"The inputs {inputs.name} have batch size {static}, but batch_size={batch_size} "
                "is given"
            )
    if dtype is not None and inputs.dtype.base_dtype is not as_dtype(dtype):
        raise ValueError(
            f"The inputs {inputs.name} are {inputs.dtype.name}, but dtype={as_dtype(dtype).name} "
            "is given"
        )
    return (shape_of(inputs)[0] if static is None else static), inputs.dtype
