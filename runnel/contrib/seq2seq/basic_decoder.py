"""``BasicDecoder``: a recurrent cell that is fed by a helper."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.contrib.seq2seq.decoder import Decoder
from runnel.contrib.seq2seq.helper import Helper
from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.nn.rnn_cell.cell import require_cell


class BasicDecoderOutput(NamedTuple):
    """The outputs of a step: those of the cell (or of the output layer), and the sample."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """Each step runs ``cell``, applies ``output_layer``, and asks ``helper`` for the next inputs.

    Example:
        >>> decoder = tf.contrib.seq2seq.BasicDecoder(
        ...     cell, helper, cell.zero_state(batch_size, tf.float32), tf.layers.Dense(VOCABULARY))
        >>> outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)
        >>> logits, tokens = outputs.rnn_output, outputs.sample_id
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        require_cell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper).__name__}")
        require_output_layer(output_layer)
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(
            rnn_output=size_of_outputs(self._cell, self._output_layer),
            sample_id=self._helper.sample_ids_shape,
        )

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            rnn_output=map_leaves(lambda _: dtype, self.output_size.rnn_output),
            sample_id=self._helper.sample_ids_dtype,
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        return (*self._helper.initialize(), self._initial_state)

    def step(
        self, time: Tensor, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with name_scope(name, "BasicDecoderStep", [time]):
            cell_outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                cell_outputs = self._output_layer(cell_outputs)
            sample_ids = self._helper.sample(time=time, outputs=cell_outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=cell_outputs, state=cell_state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(cell_outputs, sample_ids), next_state, next_inputs, finished


def require_output_layer(layer: Any) -> None:
    """A TypeError for what cannot tell the shape of its outputs."""
    if layer is not None and not (callable(layer) and hasattr(layer, "compute_output_shape")):
        raise TypeError(
            "output_layer must be a layer, such as tf.layers.Dense(vocabulary_size), received: "
            f"{type(layer).__name__}"
        )


def size_of_outputs(cell: Any, output_layer: Any) -> Any:
    """The shapes of a step's outputs, without the batch."""
    if output_layer is None:
        return cell.output_size
    whole = map_leaves(lambda size: TensorShape([None]).concatenate(size), cell.output_size)
    return map_leaves(lambda shape: shape[1:], output_layer.compute_output_shape(whole))
