"""Adding up the rows of a sparse gradient that have the same index."""

from __future__ import annotations

from runnel.graph.indexed_slices import IndexedSlices
from runnel.ops.array_shape import shape
from runnel.ops.casting import cast
from runnel.ops.comparison import not_equal
from runnel.ops.cumulative import cumsum
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.sorting import argsort
from runnel.ops.unique import unique


def row_totals(slices: IndexedSlices) -> IndexedSlices:
    """The same slices sorted by index, each holding the total of all with its index.

    Rows keep their number, and rows with the same index are equal, so setting them all is the
    same as setting each once. Unlike ``tf.unique`` this has a shape that is known beforehand,
    so a training step with sparse gradients stays one compiled call.
    """
    count = shape(slices.indices)[0]
    order = argsort(slices.indices)
    indices = gather(slices.indices, order)
    starts = concat([[0], cast(not_equal(indices[1:], indices[:-1]), "int32")], 0)
    segment = cumsum(starts)[:count]  # no row, no segment
    # One after another, so that the interpreter joins the three (``runtime.interpret.run_totals``).
    values = gather(slices.values, order)
    totals = unsorted_segment_sum(values, segment, count)
    return IndexedSlices(gather(totals, segment), indices, slices.dense_shape)


def unique_rows(slices: IndexedSlices) -> IndexedSlices:
    """The same slices with each index once; how many there are is known when the step runs."""
    indices, segment = unique(slices.indices)
    totals = unsorted_segment_sum(slices.values, segment, shape(indices)[0])
    return IndexedSlices(totals, indices, slices.dense_shape)
