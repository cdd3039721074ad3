"""Partly known shapes: merging, broadcasting, TensorFlow 1's interface."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.graph.shapes import (
    Dimension,
    TensorShape,
    as_dims,
    broadcast_dims,
    compatible_dims,
    merge_dims,
)

known_shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def hide(dims, mask):
    """``dims`` with some dimensions unknown."""
    return tuple(None if hidden else d for d, hidden in zip(dims, mask, strict=False))


@given(known_shapes, known_shapes)
def test_broadcasting_known_shapes_agrees_with_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="cannot be broadcast"):
            broadcast_dims(a, b)
    else:
        assert broadcast_dims(a, b) == expected


@given(known_shapes, known_shapes, st.data())
def test_a_broadcast_of_partly_known_shapes_never_contradicts_the_real_one(a, b, data):
    try:
        real = np.broadcast_shapes(a, b)
    except ValueError:
        return
    masks = st.lists(st.booleans(), min_size=4, max_size=4)
    partial = broadcast_dims(hide(a, data.draw(masks)), hide(b, data.draw(masks)))
    assert compatible_dims(partial, real)


@given(known_shapes, st.data())
def test_merging_two_views_of_a_shape_keeps_what_either_knows(dims, data):
    masks = st.lists(st.booleans(), min_size=4, max_size=4)
    a, b = hide(dims, data.draw(masks)), hide(dims, data.draw(masks))
    merged = merge_dims(a, b)
    assert merged == tuple(x if x is not None else y for x, y in zip(a, b, strict=True))


def test_merging_contradictions_is_an_error():
    with pytest.raises(ValueError, match="not compatible"):
        merge_dims((2, 3), (2, 4))
    with pytest.raises(ValueError, match="same rank"):
        merge_dims((2,), (2, 3))


def test_unknown_rank_merges_with_anything():
    assert merge_dims(None, (2, None)) == (2, None)
    assert merge_dims(None, None) is None


def test_tensor_shape_interface():
    shape = TensorShape([None, 3, Dimension(4)])
    assert shape.as_list() == [None, 3, 4]
    assert (shape.ndims, shape.rank, len(shape)) == (3, 3, 3)
    assert not shape.is_fully_defined()
    assert shape.num_elements() is None
    assert TensorShape([2, 3]).num_elements() == 6
    assert shape[1] == 3
    assert shape[0].value is None
    assert shape[1:] == TensorShape([3, 4])
    assert shape.concatenate([5]).as_list() == [None, 3, 4, 5]
    assert str(shape) == "(?, 3, 4)"
    assert str(TensorShape(None)) == "<unknown>"
    assert shape.is_compatible_with([7, 3, None])
    with pytest.raises(ValueError, match="incompatible"):
        shape.assert_is_compatible_with([7, 3, 5])
    with pytest.raises(ValueError, match="rank"):
        shape.with_rank(2)
    with pytest.raises(ValueError, match="as_list"):
        TensorShape(None).as_list()


def test_dimension_arithmetic_with_the_unknown_is_unknown():
    two, unknown = Dimension(2), Dimension(None)
    assert (two + 3).value == 5 and (two * 4).value == 8 and (7 // two).value == 3
    assert (two + unknown).value is None
    assert (two == unknown) is None and (two < unknown) is None
    assert two == 2 and two != 3
    assert list(range(two)) == [0, 1]


@pytest.mark.parametrize("bad", [[-2], ["a"], [1.5]])
def test_bad_dimensions_are_refused(bad):
    with pytest.raises((TypeError, ValueError)):
        as_dims(bad)


def test_shape_survives_a_round_trip_through_its_protocol_buffer():
    for dims in (None, (), (2, None, 3)):
        assert TensorShape(TensorShape(dims).as_proto())._dims == dims
