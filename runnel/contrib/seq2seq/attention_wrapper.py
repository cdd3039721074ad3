"""``AttentionWrapper``: a recurrent cell that looks at a memory in every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.seq2seq.attention_mechanism import AttentionMechanism
from runnel.contrib.seq2seq.attention_wrapper_state import AttentionWrapperState
from runnel.control_flow.structure import flatten, map_leaves
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.layers.fully_connected import Dense
from runnel.nn.rnn_cell.cell import RNNCell, require_cell
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.assertions import assert_equal
from runnel.ops.control import identity
from runnel.ops.fill import zeros
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul

_MISMATCH = (
    "When applying AttentionWrapper {name}: Non-matching batch sizes between the memory (encoder "
    "output) and {what}. Are you using the BeamSearchDecoder? You may need to tile your memory "
    "input via the tf.contrib.seq2seq.tile_batch function with argument multiplier=beam_width."
)


class AttentionWrapper(RNNCell):
    """``cell`` with its inputs joined to what it attended to in the step before.

    In each step: run the cell on ``cell_input_fn(inputs, attention)`` (by default both joined), let
    each mechanism weigh its memory by the cell's output, and take the weighted mean of the values,
    the *context*. The attention is the context, or, with an ``attention_layer_size`` or
    ``attention_layer``, that layer of the cell's output and the context joined. It is the output
    of the wrapper if ``output_attention`` (Luong's style), else the cell's output is (Bahdanau's).

    ``attention_mechanism`` may be a list; ``attention_layer_size`` and ``attention_layer`` are
    then lists too, and the attentions are joined. ``alignment_history`` keeps the weights of all
    steps in a TensorArray of the state. ``initial_cell_state`` is what ``zero_state`` gives the
    cell instead of zeros. ``attention_fn(mechanism, cell_output, attention_state,
    attention_layer)`` replaces the computation of (attention, alignments, next state).

    Example:
        >>> cell = tf.contrib.seq2seq.AttentionWrapper(
        ...     tf.nn.rnn_cell.GRUCell(128), attention, attention_layer_size=128)
        >>> state = cell.zero_state(batch_size, tf.float32).clone(cell_state=encoder_state)
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        require_cell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or a list of them, saw: "
                    f"{type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw: {cell_input_fn!r}")
        self._cell = cell
        self._attention_mechanisms = mechanisms
        self._cell_input_fn = cell_input_fn or _join
        self._attention_fn = attention_fn or compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._attention_layers = _layers_of(mechanisms, attention_layer_size, attention_layer)
        self._attention_layer_size = sum(
            _attention_size(mechanism, layer, cell)
            for mechanism, layer in zip(mechanisms, self._attention_layers, strict=True)
        )
        self._initial_cell_state: Any = None
        if initial_cell_state is not None:
            with name_scope("AttentionWrapperInit"):
                self._initial_cell_state = self._checked_cell_state(
                    initial_cell_state, _batch_size_of(initial_cell_state)
                )

    def _checked_cell_state(self, state: Any, batch_size: Any) -> Any:
        """The state, which fails at run time if its batch is not the memory's."""
        what = "initial_cell_state"
        with control_dependencies(self._same_batch(batch_size, what)):
            return map_leaves(lambda s: identity(s, name="check_initial_cell_state"), state)

    def _same_batch(self, batch_size: Any, what: str) -> list[Any]:
        """Assertions that ``batch_size`` is the memories'; a mistake known already is an error."""
        message = _MISMATCH.format(name=self._base_name, what=what)
        given, assertions = _static(batch_size), []
        for mechanism in self._attention_mechanisms:
            expected = getattr(mechanism, "batch_size", None)
            if expected is None:
                continue
            known = _static(expected)
            if known is None or given is None:
                assertions.append(assert_equal(batch_size, expected, message=message))
            elif known != given:
                raise ValueError(f"{message} They are {known} and {given}.")
        return assertions

    def _one_or_all(self, values: Any) -> Any:
        found = tuple(values)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        sizes = [mechanism.alignments_size for mechanism in self._attention_mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._one_or_all(sizes),
            attention_state=self._one_or_all(m.state_size for m in self._attention_mechanisms),
            alignment_history=self._one_or_all(
                size if self._alignment_history else () for size in sizes
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """Zeros, no attention yet; ``initial_cell_state``, if there is one, as the cell's state."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            if self._initial_cell_state is not None:
                cell_state = self._initial_cell_state
            else:
                cell_state = self._cell.zero_state(batch_size, dtype)
            with control_dependencies(self._same_batch(batch_size, "the requested batch size")):
                cell_state = map_leaves(lambda s: identity(s, "checked_cell_state"), cell_state)
            mechanisms = self._attention_mechanisms
            alignments = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=zeros([], dtype=int32),
                attention=_zero_attention(batch_size, self._attention_layer_size, dtype),
                alignments=self._one_or_all(alignments),
                attention_state=self._one_or_all(
                    m.initial_state(batch_size, dtype) for m in mechanisms
                ),
                alignment_history=self._one_or_all(
                    _history_of(a, dtype) if self._alignment_history else () for a in alignments
                ),
            )

    def call(  # type: ignore[override]
        self, inputs: Any, state: AttentionWrapperState
    ) -> tuple[Any, AttentionWrapperState]:
        """One step: the output and the next state."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState (zero_state makes one, "
                f"clone changes it). Received type {type(state).__name__} instead."
            )
        cell_inputs = self._cell_input_fn(inputs, state.attention)
        cell_output, cell_state = self._cell(cell_inputs, state.cell_state)
        what = "the query (decoder output)"
        with control_dependencies(self._same_batch(_batch_size_of(cell_output), what)):
            cell_output = identity(cell_output, name="checked_cell_output")
        parts = state.attention_state, state.alignment_history
        states, histories = parts if self._is_multi else ((parts[0],), (parts[1],))
        attentions, alignments, next_states, next_histories = [], [], [], []
        for mechanism, layer, mechanism_state, history in zip(
            self._attention_mechanisms, self._attention_layers, states, histories, strict=True
        ):
            attention, weights, next_state = self._attention_fn(
                mechanism, cell_output, mechanism_state, layer
            )
            attentions.append(attention)
            alignments.append(weights)
            next_states.append(next_state)
            next_histories.append(
                history.write(state.time, weights) if self._alignment_history else ()
            )
        attention = attentions[0] if len(attentions) == 1 else concat(attentions, 1)
        next_wrapper_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            attention_state=self._one_or_all(next_states),
            alignments=self._one_or_all(alignments),
            alignment_history=self._one_or_all(next_histories),
        )
        return (attention if self._output_attention else cell_output), next_wrapper_state


def compute_attention(
    attention_mechanism: Any, cell_output: Tensor, attention_state: Any, attention_layer: Any
) -> tuple[Tensor, Tensor, Any]:
    """The attention for a cell's output, its weights, and the mechanism's next state."""
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    context = squeeze(matmul(expand_dims(alignments, 1), attention_mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(concat([cell_output, context], 1)), alignments, next_state


def _join(inputs: Any, attention: Any) -> Tensor:
    return concat([inputs, attention], -1)


def _layers_of(mechanisms: tuple[Any, ...], sizes: Any, layers: Any) -> tuple[Any, ...]:
    """The attention layer of each mechanism, or None."""
    if sizes is not None and layers is not None:
        raise ValueError("Only one of attention_layer_size and attention_layer should be set")
    given = layers if sizes is None else sizes
    if given is None:
        return (None,) * len(mechanisms)
    each = tuple(given) if isinstance(given, list | tuple) else (given,)
    if len(each) != len(mechanisms):
        what = "attention_layer" if sizes is None else "attention_layer_size"
        raise ValueError(
            f"If provided, {what} must contain exactly one entry per attention_mechanism, saw: "
            f"{len(each)} vs {len(mechanisms)}"
        )
    if sizes is None:
        return each
    return tuple(
        Dense(size, name="attention_layer", use_bias=False, dtype=getattr(mechanism, "dtype", None))
        for size, mechanism in zip(each, mechanisms, strict=True)
    )


def _attention_size(mechanism: Any, layer: Any, cell: Any) -> int:
    depth = mechanism.values.dims[-1]
    if layer is None:
        return depth
    joined = cell.output_size + depth
    return int(layer.compute_output_shape(TensorShape([None, joined]))[-1])


def _zero_attention(batch_size: Any, depth: int, dtype: Any) -> Tensor:
    made = zeros([batch_size, depth], dtype=dtype)
    made.set_shape((_static(batch_size), depth))
    return made


def _history_of(alignments: Tensor, dtype: Any) -> TensorArray:
    return TensorArray(dtype, size=0, dynamic_size=True, element_shape=TensorShape(alignments.dims))


def _batch_size_of(state: Any) -> Any:
    first = convert_to_tensor(flatten(state)[0])
    known = first.dims[0] if first.dims else None
    return shape_of(first)[0] if known is None else known


def _static(size: Any) -> int | None:
    """The value of a size, where it is known while the graph is built."""
    if isinstance(size, Tensor):
        known = constant_value(size)
        return None if known is None else int(known)
    return None if size is None else int(size)
