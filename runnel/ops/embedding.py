"""Looking up rows of a table that may be split into shards."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import colocate_with, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import reshape, size
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.partition import dynamic_partition, parallel_dynamic_stitch_op
from runnel.ops.ranges import range as positions


def _clipped(rows: Tensor, ids: Tensor, max_norm: Any) -> Tensor:
    """Rows whose L2 norm exceeds ``max_norm`` scaled down to it."""
    if max_norm is None:
        return rows
    from runnel.ops.clipping import clip_by_norm

    if ids.dims is not None and rows.dims is not None:
        axes: Any = list(range(len(ids.dims), len(rows.dims)))
    else:
        axes = positions(get_op_def("Rank")(ids), get_op_def("Rank")(rows))
    return clip_by_norm(rows, max_norm, axes=axes)


def _rows_of(shard: Any, ids: Tensor, max_norm: Any, name: str | None = None) -> Tensor:
    with colocate_with(shard):
        return _clipped(gather(shard, ids, name=name), ids, max_norm)


def _shape_of(shard: Any) -> Tensor:
    # Where the shard is: it is large, and its shape may not be known before the step runs.
    with colocate_with(shard):
        return shape_of(convert_to_tensor(shard))


def _first_dimension(shard: Any) -> int | None:
    shape = TensorShape(shard.get_shape())
    return None if shape.rank is None else shape.as_list()[0]


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """The rows of ``params`` that ``ids`` names.

    ``params`` may be a list of shards of one table (or a partitioned variable). With the strategy
    "mod" row ``i`` is in shard ``i % len(params)``; with "div" each shard has consecutive rows,
    the first ones one more where they do not divide evenly. Each shard's rows are looked up where
    the shard lives. Rows are clipped to an L2 norm of ``max_norm`` if given.

    Example:
        >>> tf.nn.embedding_lookup(table, [3, 1])  # two rows
    """
    del validate_indices  # they are always validated
    if hasattr(params, "_get_variable_list"):
        params = params._get_variable_list()
    shards = list(params) if isinstance(params, list | tuple) else [params]
    if not shards:
        raise ValueError("Need at least one param")
    shards = [s if hasattr(s, "get_shape") else convert_to_tensor(s) for s in shards]
    with name_scope(name, "embedding_lookup", [*shards, ids]) as scope:
        wanted = convert_to_tensor(ids, name="ids")
        if len(shards) == 1:
            skip_op_ids(1)  # a copy of the rows
            return _rows_of(shards[0], wanted, max_norm, scope)
        return _from_shards(shards, wanted, partition_strategy, max_norm, scope)


def _from_shards(shards: list[Any], ids: Tensor, strategy: str, max_norm: Any, name: str) -> Tensor:
    flat = reshape(ids, [-1])
    places = positions(size(flat))
    shard_of, row_of = _assignments(shards, flat, strategy)
    cast = get_op_def("Cast")
    if shard_of.dtype.base_dtype.name != "int32":
        from runnel.graph.dtypes import int32

        shard_of = cast(shard_of, DstT=int32)
    rows = dynamic_partition(row_of, shard_of, len(shards))
    where = dynamic_partition(places, shard_of, len(shards))
    found = [_rows_of(shard, part, max_norm) for shard, part in zip(shards, rows, strict=True)]
    merged = parallel_dynamic_stitch_op(where, found, name=name)
    row_shape = _shape_of(shards[0])[1:]
    result = reshape(merged, concat([shape_of(ids), row_shape], 0))
    row = TensorShape(shards[0].get_shape())[1:]
    if ids.dims is not None and row.rank is not None:
        result.set_shape((*ids.dims, *row.as_list()))
    return result


def _assignments(shards: list[Any], flat: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """For each id the shard that holds it, and its row there."""
    count = len(shards)
    if strategy == "mod":
        return flat % count, flat // count
    if strategy != "div":
        raise ValueError(f"Unrecognized partition strategy: {strategy} (mod and div are known)")
    sizes = [_first_dimension(shard) for shard in shards]
    if None not in sizes:
        total: Any = sum(n for n in sizes if n is not None)
    else:
        total = get_op_def("Sum")(stack([_shape_of(s)[0] for s in shards]), [0])
        if total.dtype.base_dtype is not flat.dtype.base_dtype:
            total = get_op_def("Cast")(total, DstT=flat.dtype.base_dtype)
    each, extra = total // count, total % count
    # The first ``extra`` shards have one row more.
    maximum, select = get_op_def("Maximum"), get_op_def("SelectV2")
    shard_of = maximum(flat // (each + 1), (flat - extra) // each)
    longer = get_op_def("Less")(shard_of, convert_to_tensor(extra, flat.dtype.base_dtype))
    row_of = select(longer, flat % (each + 1), (flat - extra) % each)
    return shard_of, row_of
