"""Recurrent layers of Keras: ``SimpleRNN``, ``LSTM`` and ``GRU``, both ways, over any time."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.functional import scan
from runnel.graph.dtypes import bool_ as boolean
from runnel.graph.shapes import TensorShape, as_dims
from runnel.keras import activations, initializers
from runnel.keras.arguments import parameters_of
from runnel.keras.layer import Layer
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.bias import bias_add
from runnel.ops.casting import cast
from runnel.ops.comparison import logical_and
from runnel.ops.fill import ones_like, zeros, zeros_like
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.reversal import reverse
from runnel.ops.selection import where
from runnel.ops.splitting import split
from runnel.ops.transposition import transpose
from runnel.variables.initializers import Ones


class _Cell(Layer):
    """One step; ``gates`` is the number of matrices side by side in the kernels."""

    gates = 1
    states = 1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if dropout or recurrent_dropout:
            raise ValueError(
                "Recurrent layers have no dropout of their own here; apply "
                "tf.keras.layers.Dropout to their inputs, or use tf.nn.rnn_cell.DropoutWrapper"
            )
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self._given = {
            "kernel": (kernel_initializer, kernel_regularizer, kernel_constraint),
            "recurrent": (recurrent_initializer, recurrent_regularizer, recurrent_constraint),
            "bias": (bias_initializer, bias_regularizer, bias_constraint),
        }

    @property
    def state_size(self) -> list[int]:
        """The sizes of the states that a step passes on."""
        return [self.units] * self.states

    output_size = property(lambda self: self.units)

    def _weight(self, name: str, dims: list[int], kind: str, initializer: Any = None) -> Any:
        given, regularizer, constraint = self._given[kind]
        return self.add_weight(
            name,
            dims,
            initializer=initializer or given,
            regularizer=regularizer,
            constraint=constraint,
        )

    def _first_bias(self) -> Any:
        return None

    def build(self, input_shape: Any) -> None:
        depth = (as_dims(input_shape) or (None,))[-1]
        if depth is None:
            raise ValueError(f"The last dimension of the inputs to {self.name!r} must be known")
        width = self.gates * self.units
        self.kernel = self._weight("kernel", [depth, width], "kernel")
        self.recurrent_kernel = self._weight("recurrent_kernel", [self.units, width], "recurrent")
        self.bias = None
        if self.use_bias:
            self.bias = self._weight("bias", self._bias_dims(), "bias", self._first_bias())
        super().build(input_shape)

    def _bias_dims(self) -> list[int]:
        return [self.gates * self.units]

    def _projected(self, inputs: Any) -> Any:
        projected = matmul(inputs, self.kernel)
        return projected if self.bias is None else bias_add(projected, self.bias)


class SimpleRNNCell(_Cell):
    """``activation(inputs @ kernel + state @ recurrent_kernel + bias)``."""

    def call(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        (h,) = states
        output = self.activation(self._projected(inputs) + matmul(h, self.recurrent_kernel))
        return output, [output]


class _GatedCell(_Cell):
    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)


class LSTMCell(_GatedCell):
    """A step of long short-term memory; the gates are input, forget, cell and output."""

    gates, states = 4, 2

    def __init__(self, units: int, *args: Any, unit_forget_bias: bool = True, **kw: Any) -> None:
        super().__init__(units, *args, **kw)
        self.unit_forget_bias = unit_forget_bias

    def _first_bias(self) -> Any:
        if not self.unit_forget_bias:
            return None
        n, others = self.units, initializers.get(self._given["bias"][0])

        def first(dims: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            parts = [others([n], dtype=dtype), Ones()([n], dtype), others([2 * n], dtype=dtype)]
            return concat(parts, 0)

        return first

    def call(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        h, c = states
        z = self._projected(inputs) + matmul(h, self.recurrent_kernel)
        i, f, g, o = split(z, 4, axis=1)
        gate = self.recurrent_activation
        c = gate(f) * c + gate(i) * self.activation(g)
        h = gate(o) * self.activation(c)
        return h, [h, c]


class GRUCell(_GatedCell):
    """A step of a gated recurrent unit; the gates are update, reset and candidate."""

    gates = 3

    def __init__(self, units: int, *args: Any, reset_after: bool = False, **kwargs: Any) -> None:
        super().__init__(units, *args, **kwargs)
        self.reset_after = reset_after

    def _bias_dims(self) -> list[int]:
        width = self.gates * self.units
        return [2, width] if self.reset_after else [width]

    def call(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        (h,) = states
        n, gate = self.units, self.recurrent_activation
        x = matmul(inputs, self.kernel)
        if self.bias is not None:
            x = x + (self.bias[0] if self.reset_after else self.bias)
        xz, xr, xh = split(x, 3, axis=1)
        if self.reset_after:
            inner = matmul(h, self.recurrent_kernel)
            if self.bias is not None:
                inner = inner + self.bias[1]
            hz, hr, hh = split(inner, 3, axis=1)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + r * hh)
        else:
            hz, hr = split(matmul(h, self.recurrent_kernel[:, : 2 * n]), 2, axis=1)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + matmul(r * h, self.recurrent_kernel[:, 2 * n :]))
        h = z * h + (1.0 - z) * candidate
        return h, [h]


class StackedRNNCells(Layer):
    """Cells above each other as one cell."""

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = list(cells)

    @property
    def state_size(self) -> list[int]:
        """The sizes of all cells' states, the lowest cell's first."""
        return [size for cell in self.cells for size in _sizes(cell)]

    @property
    def output_size(self) -> int:
        """The number of units of the highest cell."""
        return int(getattr(self.cells[-1], "output_size", _sizes(self.cells[-1])[0]))

    def call(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        left = list(states)
        after: list[Any] = []
        for cell in self.cells:
            count = len(_sizes(cell))
            inputs, made = cell.call(inputs, left[:count])
            after, left = [*after, *made], left[count:]
        return inputs, after


def _sizes(cell: Any) -> list[int]:
    size = cell.state_size
    return list(size) if isinstance(size, list | tuple) else [size]


class RNN(Layer):
    """A cell applied to every step of a batch of sequences.

    Example:
        >>> tf.keras.layers.RNN(tf.keras.layers.GRUCell(8), return_sequences=True)(sequences)
    """

    supports_masking = True
    zero_output_for_mask = False
    """Whether outputs of steps that do not count are zeros, not those of the step before."""

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        if stateful:
            raise ValueError(
                "Recurrent layers keep no state between steps; pass it as initial_state and "
                "return it with return_state=True"
            )
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.stateful, self.unroll = stateful, unroll
        self.cell = StackedRNNCells(cell) if isinstance(cell, list | tuple) else cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.time_major = go_backwards, time_major

    def build(self, input_shape: Any) -> None:
        first = input_shape[0] if isinstance(input_shape, list) else input_shape
        depth = (as_dims(first) or (None,))[-1]
        for cell in self.cell.cells if isinstance(self.cell, StackedRNNCells) else [self.cell]:
            if not cell.built:
                # Named after this layer alone, rnn/kernel; and outside the loop.
                cell._dtype = cell._dtype or self._dtype
                cell.build(TensorShape([None, depth]))
                cell.built = True
            depth = getattr(cell, "output_size", _sizes(cell)[0])
        super().build(input_shape)

    def call(
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        if isinstance(inputs, list | tuple):
            inputs, *initial_state = inputs
            mask = mask[0] if isinstance(mask, list | tuple) else mask
        rank = len(inputs.dims)
        major = inputs if self.time_major else transpose(inputs, [1, 0, *range(2, rank)])
        counts = None
        if mask is not None:
            counts = expand_dims(mask if self.time_major else transpose(mask, [1, 0]), -1)
        if self.go_backwards:
            major = reverse(major, [0])
            counts = None if counts is None else reverse(counts, [0])
        states = self._first_states(inputs, major, initial_state)
        known_batch = inputs.dims[1 if self.time_major else 0]

        def step(carried: Any, x: Any) -> Any:
            x, counted = x if counts is not None else (x, None)
            output, after = self.cell.call(x, list(carried[1:]))
            if counted is not None:
                # A step that does not count leaves everything as it was.
                after = [
                    _chosen(counted, new, old) for new, old in zip(after, carried[1:], strict=True)
                ]
                kept = zeros_like(output) if self.zero_output_for_mask else carried[0]
                output = _chosen(counted, output, kept)
            return (output, *after)

        width = getattr(self.cell, "output_size", _sizes(self.cell)[0])
        start = zeros(stack([shape(major)[1], width]), inputs.dtype)
        start.set_shape([known_batch, width])
        elements = major if counts is None else (major, counts)
        outputs, *histories = scan(step, elements, initializer=(start, *states))
        last = [history[-1] for history in histories]
        if self.return_sequences:
            result = outputs if self.time_major else transpose(outputs, [1, 0, 2])
        else:
            result = outputs[-1]
        return [result, *last] if self.return_state else result

    def _first_states(self, inputs: Any, major: Any, given: Any) -> list[Any]:
        if given:
            return list(given) if isinstance(given, list | tuple) else [given]
        known_batch = inputs.dims[1 if self.time_major else 0]
        batch = shape(major)[1] if known_batch is None else known_batch
        states = [zeros(stack([batch, n]), inputs.dtype) for n in _sizes(self.cell)]
        for state, n in zip(states, _sizes(self.cell), strict=True):
            state.set_shape([known_batch, n])
        return states

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the inputs, where the outputs are sequences."""
        given = mask[0] if isinstance(mask, list | tuple) else mask
        found = given if self.return_sequences else None
        states = len(_sizes(self.cell))
        return [found, *[None] * states] if self.return_state else found

    def __call__(self, inputs: Any, initial_state: Any = None, *args: Any, **kwargs: Any) -> Any:
        # The states are among the inputs, so that a model knows where they come from.
        if initial_state is not None:
            given = initial_state if isinstance(initial_state, list | tuple) else [initial_state]
            inputs = [inputs, *given]
        return super().__call__(inputs, *args, **kwargs)

    def _rename(self, name: str) -> None:
        self._name = self._base_name = name


def _chosen(counted: Any, new: Any, old: Any) -> Any:
    kept = logical_and(counted, cast(ones_like(new), boolean))
    return where(kept, new, old)


_OF_THE_LAYER = (
    "return_sequences",
    "return_state",
    "go_backwards",
    "stateful",
    "unroll",
    "time_major",
    "name",
    "trainable",
    "dtype",
    "input_shape",
    "batch_input_shape",
    "batch_size",
    "weights",
    "activity_regularizer",
)


_NOT_DESCRIBED = ("input_shape", "batch_input_shape", "batch_size", "weights", "name", "dtype")


class _OfCell(RNN):
    kind: type[_Cell] = SimpleRNNCell

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        width, length = kwargs.pop("input_dim", None), kwargs.pop("input_length", None)
        if "input_shape" not in kwargs and (width is not None or length is not None):
            kwargs["input_shape"] = (length, width)
        own = {name: kwargs.pop(name) for name in _OF_THE_LAYER if name in kwargs}
        super().__init__(None, **own)
        # The variables are named after the layer: gru/kernel, not gru/gru_cell/kernel.
        self.cell = self.kind(units, *args, name=self.name, **kwargs)
        self.units = self.cell.units

    @classmethod
    def _parameters(cls) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The arguments of the cell, then those of the layer."""
        order, of_cell = parameters_of(cls.kind)
        _, of_layer = parameters_of(RNN)
        inherited = ("activity_regularizer", *_OF_THE_LAYER)
        others = {n: d for n, d in of_layer.items() if n != "cell" and n not in of_cell}
        cell = {n: d for n, d in of_cell.items() if n not in inherited}
        return order, {**cell, **{n: d for n, d in others.items() if n not in _NOT_DESCRIBED}}


class SimpleRNN(_OfCell):
    """A fully connected recurrent layer."""


class LSTM(_OfCell):
    """Long short-term memory over a batch of sequences.

    Example:
        >>> tf.keras.layers.LSTM(16, return_sequences=True)(sequences)
    """

    kind = LSTMCell


class GRU(_OfCell):
    """Gated recurrent units over a batch of sequences."""

    kind = GRUCell
