"""Decoders that attend to what an encoder gave (Vinyals et al., arXiv:1412.7449)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from runnel.contrib.legacy_seq2seq.previous import (
    Decoded,
    _extract_argmax_and_embed,
    check_projection,
    decode,
)
from runnel.contrib.rnn.linear import linear
from runnel.contrib.rnn.projections import EmbeddingWrapper, OutputProjectionWrapper
from runnel.control_flow.structure import flatten
from runnel.graph.dtypes import float32
from runnel.nn.rnn.static import static_rnn
from runnel.ops.array_shape import reshape, shape
from runnel.ops.casting import cast
from runnel.ops.elementwise import tanh
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fill import zeros
from runnel.ops.joining import concat, stack
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.softmax import softmax
from runnel.variables.get_variable import get_variable
from runnel.variables.variable_scope import get_variable_scope, variable_scope


class _Heads:
    """Reads the attended states, once for each head."""

    def __init__(self, states: Any, count: int, dtype: Any) -> None:
        self._dtype = dtype
        self._size = states.shape[2].value
        self._length = states.shape[1].value
        if self._length is None:
            self._length = shape(states)[1]
        self._states = states
        self._keys, self._weights = [], []
        for number in range(count):
            # A convolution with one point: TensorFlow's variable has its four dimensions.
            kernel = get_variable(f"AttnW_{number}", [1, 1, self._size, self._size], dtype=dtype)
            keys = reshape(states, [-1, self._size]) @ reshape(kernel, [self._size, self._size])
            self._keys.append(reshape(keys, [-1, self._length, self._size]))
            self._weights.append(get_variable(f"AttnV_{number}", [self._size], dtype=dtype))

    def nothing(self, batch_size: Any) -> list[Any]:
        """What the heads give before they have read."""
        read = [zeros(stack([batch_size, self._size]), self._dtype) for _ in self._keys]
        for values in read:
            values.set_shape([None, self._size])
        return read

    def read(self, query: Any) -> list[Any]:
        """The states, weighted by how well they fit ``query``, for each head."""
        parts = flatten(query)
        joined = concat(parts, 1) if len(parts) > 1 else parts[0]
        found = []
        for number, (keys, weights) in enumerate(zip(self._keys, self._weights, strict=True)):
            with variable_scope(f"Attention_{number}"):
                asked = cast(linear([joined], self._size), self._dtype)
                asked = reshape(asked, [-1, 1, self._size])
                scores = reduce_sum(weights * tanh(keys + asked), [2])
                shares = cast(softmax(cast(scores, float32)), self._dtype)
                weighted = reshape(shares, [-1, self._length, 1]) * self._states
                found.append(reshape(reduce_sum(weighted, [1]), [-1, self._size]))
        return found


def attention_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """A cell along a list of inputs, each joined with what the step before read.

    ``attention_states`` are of shape ``[batch, length, size]``. With ``loop_function`` the inputs
    after the first are what it makes of the output before. ``initial_state_attention`` reads with
    the initial state too: use it to go on from a decoder that has stopped.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.shape[2].value is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    if output_size is None:
        output_size = cell.output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as inside:
        heads = _Heads(attention_states, num_heads, inside.dtype)
        state, outputs = initial_state, []
        if initial_state_attention:
            read = heads.read(initial_state)
        else:
            read = heads.nothing(shape(decoder_inputs[0])[0])
        previous: Any = None
        for number, given in enumerate(decoder_inputs):
            if number:
                get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(previous, number)
            depth = given.shape.with_rank(2)[1].value
            if depth is None:
                raise ValueError(f"Could not infer input size from input: {given.name}")
            together = [cast(part, inside.dtype) for part in (given, *read)]
            output, state = cell(linear(together, depth), state)
            again = True if initial_state_attention and not number else None
            with variable_scope(get_variable_scope(), reuse=again):
                read = heads.read(state)
            with variable_scope("AttnOutputProjection"):
                output = linear([cast(output, inside.dtype), *read], output_size)
            outputs.append(output)
            if loop_function is not None:
                previous = output
        return outputs, state


def embedding_attention_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """:func:`attention_decoder` along symbols; ``feed_previous`` as in `embedding_rnn_decoder`."""
    if output_size is None:
        output_size = cell.output_size
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype) as inside:
        check_projection(output_projection, num_symbols, inside.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        feed = (
            _extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
            if feed_previous
            else None
        )
        return attention_decoder(
            [embedding_lookup(embedding, symbols) for symbols in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=output_size,
            num_heads=num_heads,
            loop_function=feed,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """A cell along the encoder's symbols; another, attending to its outputs, along the decoder's.

    The outputs are logits, or with ``output_projection`` what the cell gives. ``feed_previous`` may
    be a tensor.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as inside:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        seen, encoded = static_rnn(encoder, encoder_inputs, dtype=inside.dtype)
        states = concat([reshape(step, [-1, 1, cell.output_size]) for step in seen], 1)
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols

        def decoder(fed: bool) -> Decoded:
            return embedding_attention_decoder(
                decoder_inputs,
                encoded,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=fed,
                update_embedding_for_previous=isinstance(feed_previous, bool),
                initial_state_attention=initial_state_attention,
            )

        return decode(feed_previous, decoder, encoded)
