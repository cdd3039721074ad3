"""Recurrent layers of Keras: ``SimpleRNN``, ``LSTM`` and ``GRU``, both ways, over any time."""

from __future__ import annotations

import copy
from typing import Any

from runnel.control_flow.functional import scan
from runnel.graph.shapes import TensorShape, as_dims
from runnel.keras import activations, initializers
from runnel.keras.core_layers import add, concatenate, multiply
from runnel.keras.layer import Layer
from runnel.ops.array_shape import reshape, shape
from runnel.ops.bias import bias_add
from runnel.ops.fill import zeros
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.reversal import reverse
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
        **kwargs: Any,
    ) -> None:
        kwargs.pop("implementation", None)
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

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        if stateful:
            raise ValueError(
                "Recurrent layers keep no state between steps; pass it as initial_state and "
                "return it with return_state=True"
            )
        super().__init__(**kwargs)
        self.cell = StackedRNNCells(cell) if isinstance(cell, list | tuple) else cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.time_major = go_backwards, time_major

    def build(self, input_shape: Any) -> None:
        depth = (as_dims(input_shape) or (None,))[-1]
        for cell in self.cell.cells if isinstance(self.cell, StackedRNNCells) else [self.cell]:
            if not cell.built:
                # Named after this layer alone, rnn/kernel; and outside the loop.
                cell._dtype = cell._dtype or self._dtype
                cell.build(TensorShape([None, depth]))
                cell.built = True
            depth = getattr(cell, "output_size", _sizes(cell)[0])
        super().build(input_shape)

    def call(self, inputs: Any, initial_state: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        if mask is not None:
            raise ValueError("Recurrent layers take no mask; use tf.nn.dynamic_rnn's lengths")
        rank = len(inputs.dims)
        major = inputs if self.time_major else transpose(inputs, [1, 0, *range(2, rank)])
        if self.go_backwards:
            major = reverse(major, [0])
        known_batch = inputs.dims[1 if self.time_major else 0]
        if initial_state is None:
            batch = shape(major)[1] if known_batch is None else known_batch
            states = [zeros(stack([batch, n]), inputs.dtype) for n in _sizes(self.cell)]
            for state, n in zip(states, _sizes(self.cell), strict=True):
                state.set_shape([known_batch, n])
        else:
            states = (
                list(initial_state) if isinstance(initial_state, list | tuple) else [initial_state]
            )

        def step(carried: Any, x: Any) -> Any:
            output, after = self.cell.call(x, list(carried[1:]))
            return (output, *after)

        width = getattr(self.cell, "output_size", _sizes(self.cell)[0])
        start = zeros(stack([shape(major)[1], width]), inputs.dtype)
        start.set_shape([known_batch, width])
        outputs, *histories = scan(step, major, initializer=(start, *states))
        last = [history[-1] for history in histories]
        if self.return_sequences:
            result = outputs if self.time_major else transpose(outputs, [1, 0, 2])
        else:
            result = outputs[-1]
        return [result, *last] if self.return_state else result

    def __call__(self, inputs: Any, initial_state: Any = None, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(inputs, *args, initial_state=initial_state, **kwargs)


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
    "input_dim",
)


class _OfCell(RNN):
    kind: type[_Cell] = SimpleRNNCell

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in _OF_THE_LAYER if name in kwargs}
        super().__init__(None, **own)
        # The variables are named after the layer: gru/kernel, not gru/gru_cell/kernel.
        self.cell = self.kind(units, *args, name=self.name, **kwargs)
        self.units = self.cell.units


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


def _backwards(layer: Any) -> Any:
    """Another layer like ``layer``, which is not built yet, that goes the other way."""
    if layer.built:
        raise ValueError(
            f"The layer {layer.name!r} has been used; give Bidirectional a new one, or both"
        )
    other = copy.deepcopy(layer)
    other._name, other.go_backwards = f"backward_{layer.name}", not layer.go_backwards
    return other


class TimeDistributed(Layer):
    """A layer applied to every step of a batch of sequences."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any) -> None:
        if not self.layer.built:
            # Named after this layer alone: time_distributed/kernel.
            batch, _, *inner = as_dims(input_shape) or (None, None)
            self.layer._dtype = self.layer._dtype or self._dtype
            self.layer.build(TensorShape([batch, *inner]))
            self.layer.built = True
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        given = shape(inputs)
        whole = [given[i] if d is None else d for i, d in enumerate(inputs.dims)]
        merged = reshape(inputs, [-1, *inputs.dims[2:]])
        outputs = self.layer.call(merged, *args, **kwargs)
        result = reshape(outputs, [*whole[:2], *outputs.dims[1:]])
        result.set_shape([*inputs.dims[:2], *outputs.dims[1:]])
        return result


class Bidirectional(Layer):
    """A recurrent layer over sequences and another one of its kind over their reverses."""

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", backward_layer: Any = None, **kw: Any
    ) -> None:
        super().__init__(**kw)
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"merge_mode must be concat, sum, mul, ave or None: {merge_mode!r}")
        self.merge_mode = merge_mode
        self.forward_layer, self.backward_layer = layer, backward_layer or _backwards(layer)
        layer._name = f"forward_{layer.name}"

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        ahead, back = self.forward_layer(inputs), self.backward_layer(inputs)
        states: list[Any] = []
        if self.forward_layer.return_state:
            states = [*ahead[1:], *back[1:]]
            ahead, back = ahead[0], back[0]
        if self.forward_layer.return_sequences:
            back = reverse(back, [0 if self.forward_layer.time_major else 1])
        if self.merge_mode == "concat":
            merged = concatenate([ahead, back])
        elif self.merge_mode == "mul":
            merged = multiply([ahead, back])
        elif self.merge_mode is None:
            return [ahead, back, *states]
        else:
            merged = add([ahead, back])
            merged = merged / 2.0 if self.merge_mode == "ave" else merged
        return [merged, *states] if states else merged
