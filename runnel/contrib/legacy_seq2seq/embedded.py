"""Encoders and decoders of symbols: they embed their inputs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from runnel.contrib.legacy_seq2seq.decoders import rnn_decoder, tied_rnn_seq2seq
from runnel.contrib.legacy_seq2seq.previous import (
    Decoded,
    _extract_argmax_and_embed,
    check_projection,
    decode,
)
from runnel.contrib.rnn.projections import EmbeddingWrapper, OutputProjectionWrapper
from runnel.nn.rnn.static import static_rnn
from runnel.ops.embedding import embedding_lookup
from runnel.variables.get_variable import get_variable
from runnel.variables.variable_scope import variable_scope


def embedding_rnn_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> Decoded:
    """:func:`rnn_decoder` along symbols.

    With ``feed_previous`` the inputs after the first are the likeliest symbols of the output
    before, projected with ``output_projection``, weights and biases, where these are given.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as inside:
        check_projection(output_projection, num_symbols, inside.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        feed = (
            _extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
            if feed_previous
            else None
        )
        embedded = (embedding_lookup(embedding, symbols) for symbols in decoder_inputs)
        return rnn_decoder(embedded, initial_state, cell, loop_function=feed)


def embedding_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Decoded:
    """A cell along the encoder's symbols; another, from that state, along the decoder's.

    The outputs are logits, or with ``output_projection`` what the cell gives. ``feed_previous`` may
    be a tensor.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as inside:
        if dtype is not None:
            inside.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, encoded = static_rnn(encoder, encoder_inputs, dtype=dtype or inside.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decoder(fed: bool) -> Decoded:
            return embedding_rnn_decoder(
                decoder_inputs,
                encoded,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection,
                fed,
                # Where a tensor decides, the gradient of what is fed back stops.
                update_embedding_for_previous=isinstance(feed_previous, bool),
            )

        return decode(feed_previous, decoder, encoded)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Decoded:
    """:func:`embedding_rnn_seq2seq` with one set of variables, and one table of embeddings."""
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as inside:
        symbols = num_symbols if num_decoder_symbols is None else num_decoder_symbols
        check_projection(output_projection, num_symbols, inside.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=inside.dtype)
        encoder_embedded = [embedding_lookup(embedding, each) for each in encoder_inputs]
        decoder_embedded = [embedding_lookup(embedding, each) for each in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, symbols)
        update = isinstance(feed_previous, bool)

        def decoder(fed: bool) -> Decoded:
            feed = _extract_argmax_and_embed(embedding, output_projection, update) if fed else None
            return tied_rnn_seq2seq(
                encoder_embedded, decoder_embedded, cell, feed, dtype=inside.dtype
            )

        like = cell.zero_state(1, inside.dtype) if not update else None
        return decode(feed_previous, decoder, like)


def one2many_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs_dict: Mapping[str, list[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """One encoder, and a decoder for each name: their outputs and states by name."""
    outputs, states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as inside:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, encoded = static_rnn(encoder, encoder_inputs, dtype=inside.dtype)
        for name, decoder_inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decoder(
                    fed: bool, inputs: Any = decoder_inputs, cell: Any = cell, of: int = symbols
                ) -> Decoded:
                    return embedding_rnn_decoder(
                        inputs,
                        encoded,
                        cell,
                        of,
                        embedding_size,
                        feed_previous=fed,
                        update_embedding_for_previous=isinstance(feed_previous, bool),
                    )

                outputs[name], states[name] = decode(feed_previous, decoder, encoded)
    return outputs, states
