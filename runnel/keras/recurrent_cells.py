"""Recurrent cells of Keras: one step of ``SimpleRNN``, ``LSTM`` and ``GRU``."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.smart_cond import smart_cond
from runnel.graph.dtypes import float32
from runnel.graph.shapes import as_dims
from runnel.keras import activations, initializers
from runnel.keras.layer import Layer
from runnel.keras.learning_phase import resolved
from runnel.ops.bias import bias_add
from runnel.ops.control import identity
from runnel.ops.fill import ones
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.sampling.dropout import dropout
from runnel.ops.splitting import split
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
        self.dropout = min(1.0, max(0.0, dropout))
        self.recurrent_dropout = min(1.0, max(0.0, recurrent_dropout))
        self._masks: tuple[Any, Any] = (None, None)
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

    # Dropout ----------------------------------------------------------------------------------

    def choose_dropout(self, rows: Any, depth: int | None, training: Any) -> None:
        """Draws what is dropped in the whole sequence, for each gate by itself.

        ``rows`` is the number of sequences, and ``depth`` the size of the inputs.
        """
        kind = self._dtype or float32

        def drawn(rate: float, width: int | None) -> Any:
            if not rate:
                return None
            whole = ones(stack([rows, width]), kind)
            masks = [
                smart_cond(
                    resolved(training),
                    lambda: dropout(whole, rate=rate),
                    lambda: identity(whole),
                )
                for _ in range(self.gates)
            ]
            return masks

        self._masks = drawn(self.dropout, depth), drawn(self.recurrent_dropout, self.units)

    def forget_dropout(self) -> None:
        """The next sequence drops other elements, or none."""
        self._masks = (None, None)

    def _product(self, x: Any, kernel: Any, masks: Any, first: int = 0) -> Any:
        """``x @ kernel``, where each gate sees another part of ``x``."""
        if masks is None:
            return matmul(x, kernel)
        n = self.units
        parts = (kernel.shape.as_list()[1] or 0) // n
        products = [
            matmul(x * masks[first + g], kernel[:, g * n : (g + 1) * n]) for g in range(parts)
        ]
        return concat(products, 1)

    def _projected(self, inputs: Any) -> Any:
        projected = self._product(inputs, self.kernel, self._masks[0])
        return projected if self.bias is None else bias_add(projected, self.bias)

    def _recurred(self, h: Any) -> Any:
        return self._product(h, self.recurrent_kernel, self._masks[1])


class SimpleRNNCell(_Cell):
    """``activation(inputs @ kernel + state @ recurrent_kernel + bias)``."""

    def call(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        (h,) = states
        output = self.activation(self._projected(inputs) + self._recurred(h))
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
        z = self._projected(inputs) + self._recurred(h)
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
        x = self._product(inputs, self.kernel, self._masks[0])
        kept = self._masks[1]
        if self.bias is not None:
            x = x + (self.bias[0] if self.reset_after else self.bias)
        xz, xr, xh = split(x, 3, axis=1)
        if self.reset_after:
            inner = self._recurred(h)
            if self.bias is not None:
                inner = inner + self.bias[1]
            hz, hr, hh = split(inner, 3, axis=1)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + r * hh)
        else:
            gates, last = self.recurrent_kernel[:, : 2 * n], self.recurrent_kernel[:, 2 * n :]
            hz, hr = split(self._product(h, gates, kept), 2, axis=1)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + self._product(r * h, last, kept, 2))
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
