"""Scaled dot-product attention (Vaswani et al., 2017); runnel's own, TensorFlow 1.15 has none."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import multiply
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, greater_equal, logical_and
from runnel.ops.elementwise import rsqrt
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.ranges import range as positions
from runnel.ops.sampling.dropout import dropout
from runnel.ops.selection import where_v2
from runnel.ops.softmax import softmax
from runnel.ops.transposition import transpose


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    is_causal: bool = False,
    scale: Any = None,
    dropout_rate: Any = 0.0,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """For each query, the mean of the values weighted by how well their keys match it.

    ``softmax(query @ key^T * scale + mask) @ value``, with ``query`` [..., queries, depth],
    ``key`` [..., keys, depth] and ``value`` [..., keys, width]; the dimensions before are batches
    and broadcast. ``mask`` broadcasts to [..., queries, keys]: a boolean one is True where a query
    may see a key; one of numbers is added to the scores. ``is_causal`` lets query i see the keys 0
    to i only. A query that may see no key gets zeros. ``scale`` is 1/sqrt(depth) unless given.
    Weights are dropped with probability ``dropout_rate``. 16-bit scores are normalised in 32 bits.

    Example:
        >>> tf.nn.scaled_dot_product_attention(q, k, v, is_causal=True)  # [batch, heads, time, n]
    """
    with name_scope(name, "scaled_dot_product_attention", [query, key, value, mask]):
        q = convert_to_tensor(query, name="query")
        k = convert_to_tensor(key, dtype=q.dtype.base_dtype, name="key")
        v = convert_to_tensor(value, dtype=q.dtype.base_dtype, name="value")
        _require_fitting(q, k, v)
        dtype = q.dtype.base_dtype
        if scale is None:
            scale = rsqrt(cast(_size(q, -1), dtype))
        # Scaling the queries, not the products, keeps 16-bit products in range.
        scores = matmul(multiply(q, convert_to_tensor(scale, dtype=dtype)), k, transpose_b=True)
        if dtype.size < 4:
            scores = cast(scores, dtypes.float32)
        weights = cast(_normalised(*_masked(scores, mask, is_causal)), dtype)
        if not (isinstance(dropout_rate, int | float) and dropout_rate == 0):
            weights = dropout(weights, rate=dropout_rate, seed=seed)
        return matmul(weights, v, name="attended")


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    mask: Any = None,
    is_causal: bool = False,
    scale: Any = None,
    dropout_rate: Any = 0.0,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Attention in ``num_heads`` equal parts of the last dimension, joined again.

    ``query`` is [batch, queries, depth], ``key`` [batch, keys, depth] and ``value`` [batch, keys,
    width], already projected (``tf.layers.dense``); the result is [batch, queries, width].
    ``mask`` broadcasts to [batch, heads, queries, keys]. The rest is
    :func:`scaled_dot_product_attention`'s.

    Example:
        >>> mixed = tf.nn.multi_head_attention(q, k, v, num_heads=8, is_causal=True)
    """
    with name_scope(name, "multi_head_attention", [query, key, value, mask]):
        q, k, v = (
            _split_heads(convert_to_tensor(x, name=label), num_heads, label)
            for label, x in (("query", query), ("key", key), ("value", value))
        )
        attended = scaled_dot_product_attention(
            q,
            k,
            v,
            mask=mask,
            is_causal=is_causal,
            scale=scale,
            dropout_rate=dropout_rate,
            seed=seed,
        )
        joined = transpose(attended, [0, 2, 1, 3])
        width = None if joined.dims is None or joined.dims[-1] is None else joined.dims[-1]
        depth = _size(joined, -1) * num_heads if width is None else width * num_heads
        return reshape(joined, concat([shape_of(joined)[:2], [depth]], 0))


def _split_heads(x: Tensor, heads: int, label: str) -> Tensor:
    """[batch, time, depth] as [batch, heads, time, depth / heads]."""
    depth = None if not x.dims else x.dims[-1]
    if x.dims is None or len(x.dims) != 3 or depth is None or depth % heads:
        raise ValueError(
            f"multi_head_attention divides the last dimension of {label} among {heads} heads; it "
            f"must be [batch, time, depth] with a known multiple of {heads} as its depth, not "
            f"{format_dims(x.dims)}"
        )
    divided = reshape(x, concat([shape_of(x)[:2], [heads, depth // heads]], 0))
    return transpose(divided, [0, 2, 1, 3])


def _require_fitting(q: Tensor, k: Tensor, v: Tensor) -> None:
    for label, x in (("query", q), ("key", k), ("value", v)):
        if not x.dtype.base_dtype.is_floating:
            raise TypeError(f"{label} must hold floats, not {x.dtype.name}")
        if x.dims is not None and len(x.dims) < 2:
            raise ValueError(
                f"{label} must be at least [positions, depth], not {format_dims(x.dims)}"
            )
    for one, other, axis, what in (
        (("query", q), ("key", k), -1, "depth"),
        (("key", k), ("value", v), -2, "number of keys"),
    ):
        a = None if one[1].dims is None else one[1].dims[axis]
        b = None if other[1].dims is None else other[1].dims[axis]
        if a is not None and b is not None and a != b:
            raise ValueError(
                f"{one[0]} and {other[0]} must have the same {what}, but their shapes are "
                f"{format_dims(one[1].dims)} and {format_dims(other[1].dims)}"
            )


def _size(x: Tensor, axis: int) -> Any:
    if x.dims is not None and x.dims[axis] is not None:
        return x.dims[axis]
    return shape_of(x)[axis]


def _masked(scores: Tensor, mask: Any, is_causal: bool) -> tuple[Tensor, Tensor | None]:
    """The scores with what the mask adds, and where they count (None: everywhere)."""
    allowed: Tensor | None = None
    if mask is not None:
        given = convert_to_tensor(mask, name="mask")
        if given.dtype.is_bool:
            allowed = given
        else:
            added = cast(given, scores.dtype.base_dtype)
            allowed = greater(added, -float("inf"))
            scores = scores + where_v2(allowed, added, zeros_like(added))
    if is_causal:
        past = greater_equal(
            expand_dims(positions(_size(scores, -2)), 1), positions(_size(scores, -1))
        )
        allowed = past if allowed is None else logical_and(allowed, past)
    return scores, allowed


def _normalised(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """The weights: softmax over the keys that are allowed, 0 for the others."""
    if allowed is None:
        return softmax(scores)
    # The lowest number, not minus infinity: a row of nothing else would give 0/0.
    lowest = convert_to_tensor(scores.dtype.base_dtype.min, dtype=scores.dtype.base_dtype)
    weights = softmax(where_v2(allowed, scores, lowest))
    return where_v2(allowed, weights, zeros_like(weights))
