"""Recurrent layers of Keras: a cell applied to every step of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.control_flow.functional import scan
from runnel.graph.dtypes import bool_ as boolean
from runnel.graph.dtypes import float32
from runnel.graph.graph import get_default_graph
from runnel.graph.shapes import TensorShape, as_dims
from runnel.keras.arguments import parameters_of
from runnel.keras.layer import Layer
from runnel.keras.recurrent_cells import (
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedRNNCells,
    _Cell,
    _sizes,
)
from runnel.keras.tracking import tracked_variable
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.casting import cast
from runnel.ops.comparison import logical_and
from runnel.ops.fill import ones_like, zeros, zeros_like
from runnel.ops.joining import stack
from runnel.ops.reversal import reverse
from runnel.ops.selection import where
from runnel.ops.transposition import transpose
from runnel.variables.initializers import Zeros


class RNN(Layer):
    """A cell applied to every step of a batch of sequences.

    With ``stateful`` each batch begins with the states that the one before has left; that needs
    inputs with a known batch.

    Example:
        >>> tf.keras.layers.RNN(tf.keras.layers.GRUCell(8), return_sequences=True)(sequences)
    """

    supports_masking = True
    states: list[Any] | None = None
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
        self._choose_dropout(inputs, major, training)
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
        for cell in self._cells():
            if isinstance(cell, _Cell):
                cell.forget_dropout()
        last = [history[-1] for history in histories]
        if self.stateful:
            kept = zip(self.states or (), last, strict=True)
            self.add_update([variable.assign(value) for variable, value in kept], inputs)
        if self.return_sequences:
            result = outputs if self.time_major else transpose(outputs, [1, 0, 2])
        else:
            result = outputs[-1]
        return [result, *last] if self.return_state else result

    def _cells(self) -> list[Any]:
        return self.cell.cells if isinstance(self.cell, StackedRNNCells) else [self.cell]

    def _choose_dropout(self, inputs: Any, major: Any, training: Any) -> None:
        depth = inputs.dims[-1]
        for cell in self._cells():
            if isinstance(cell, _Cell):
                cell.choose_dropout(shape(major)[1], depth, training)
            depth = getattr(cell, "output_size", _sizes(cell)[0])

    def _first_states(self, inputs: Any, major: Any, given: Any) -> list[Any]:
        if given:
            return list(given) if isinstance(given, list | tuple) else [given]
        known_batch = inputs.dims[1 if self.time_major else 0]
        if self.stateful:
            return [state.read_value() for state in self._kept_states(known_batch)]
        batch = shape(major)[1] if known_batch is None else known_batch
        states = [zeros(stack([batch, n]), inputs.dtype) for n in _sizes(self.cell)]
        for state, n in zip(states, _sizes(self.cell), strict=True):
            state.set_shape([known_batch, n])
        return states

    def _kept_states(self, batch: int | None) -> list[Any]:
        if self.states is None:
            if batch is None:
                raise ValueError(
                    "If a RNN is stateful, it needs to know its batch size. Specify the batch size "
                    "of your input tensors: give a Sequential's first layer a `batch_input_shape`, "
                    "or an Input a `batch_shape`"
                )
            kind = self._dtype or float32
            with get_default_graph().control_dependencies(None):
                self.states = [
                    tracked_variable("state", [batch, n], kind, Zeros(), False, [])
                    for n in _sizes(self.cell)
                ]
        return self.states

    def reset_states(self, states: Any = None) -> None:
        """Sets the states that a ``stateful`` layer keeps to zeros, or to arrays."""
        from runnel.keras.backend_state import batch_set_value

        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        if self.states is None:
            raise ValueError(f"The layer {self.name!r} has not been called, so it has no states")
        given = states if isinstance(states, list | tuple) or states is None else [states]
        if given is None:
            given = [np.zeros(state.shape.as_list()) for state in self.states]
        if len(given) != len(self.states):
            raise ValueError(
                f"Layer {self.name} expects {len(self.states)} states, but it received "
                f"{len(given)} state values"
            )
        batch_set_value(list(zip(self.states, given, strict=True)))

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
    kind: Any = SimpleRNNCell

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
