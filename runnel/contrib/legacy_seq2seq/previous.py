"""Feeding a decoder's output back: as its next input, always, never, or as a tensor says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.control_flow.structure import flatten, pack_as
from runnel.graph.conversion import convert_to_tensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.bias import xw_plus_b
from runnel.ops.control import stop_gradient
from runnel.ops.embedding import embedding_lookup
from runnel.variables.variable_scope import get_variable_scope, variable_scope

Decoded = tuple[list[Any], Any]
"""The outputs of a decoder, and its last state."""


def _extract_argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, int], Any]:
    """Makes a loop function: it embeds the symbol that the output before finds most likely."""

    def embed_likeliest(previous: Any, _: int) -> Any:
        if output_projection is not None:
            previous = xw_plus_b(previous, *output_projection)
        embedded = embedding_lookup(embedding, argmax(previous, 1))
        return embedded if update_embedding else stop_gradient(embedded)

    return embed_likeliest


def check_projection(output_projection: Any, num_symbols: int, dtype: Any) -> None:
    """Refuses a pair of weights and biases that does not give ``num_symbols`` logits."""
    if output_projection is not None:
        weights, biases = (convert_to_tensor(part, dtype) for part in output_projection)
        weights.shape.assert_is_compatible_with([None, num_symbols])
        biases.shape.assert_is_compatible_with([num_symbols])


def decode(feed_previous: Any, decoder: Callable[[bool], Decoded], like: Any) -> Decoded:
    """``decoder(feed_previous)``, also where a tensor decides; its state is structured ``like``."""
    if isinstance(feed_previous, bool):
        return decoder(feed_previous)
    counts = []

    def branch(fed: bool) -> list[Any]:
        # The branches share their variables: the first makes them.
        with variable_scope(get_variable_scope(), reuse=None if fed else True):
            outputs, state = decoder(fed)
            counts.append(len(outputs))
            return [*outputs, *flatten(state)]

    found = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    return found[: counts[0]], pack_as(like, found[counts[0] :])
