"""Functions of TensorFlow's inner modules, called here and there with the same values."""

from __future__ import annotations

import collections
import importlib
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

import runnel as tf

tensorflow = pytest.importorskip("tensorflow")
reference = tensorflow.compat.v1


def both(module):
    return (
        importlib.import_module(f"runnel.python.{module}"),
        importlib.import_module(f"tensorflow.python.{module}"),
    )


Point = collections.namedtuple("Point", "y x")
Alike = collections.namedtuple("Point", "y x")  # another class, which is told by its fields


class OwnList(list):
    """A list of another class, which it stays."""


class OwnMapping(collections.abc.Mapping):
    def __init__(self, items):
        self._items = dict(items)

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __eq__(self, other):
        return type(other) is OwnMapping and self._items == other._items

    __hash__ = None

    def __repr__(self):
        return f"OwnMapping({self._items})"  # tests are named by it, in every process alike


class Pair:
    """What the package attrs makes of a class with two attributes."""

    __attrs_attrs__ = (SimpleNamespace(name="second"), SimpleNamespace(name="first"))

    def __init__(self, second, first):
        self.second, self.first = second, first

    def __repr__(self):
        return f"Pair({self.second}, {self.first})"

    def __eq__(self, other):
        return (self.second, self.first) == (other.second, other.first)

    __hash__ = None


DEEP = {"b": [1, (2, 3)], "a": Point(4, {"k": 5})}
FORMS = [
    DEEP,
    [1, [2, [3, []]]],
    7,
    "text",
    (Point(1, 2), [collections.OrderedDict(z=1, c=2)]),
    range(3),
    collections.defaultdict(list, q=1),
    {},
    OwnList([1, OwnList([2])]),
    OwnMapping({"b": [1], "a": 2}),
    {"b": 1, "a": 2}.items(),
    collections.deque([1, 2]),
    {3, 4},
    b"bytes",
    None,
]


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize(
    "function",
    ["is_nested", "flatten", "flatten_with_tuple_paths", "flatten_with_joined_string_paths"],
)
def test_structures_are_taken_apart_alike(form, function):
    ours, theirs = both("util.nest")
    assert getattr(ours, function)(form) == getattr(theirs, function)(form)


@pytest.mark.parametrize("form", [*FORMS, Pair(1, [2])], ids=repr)
def test_structures_are_put_together_alike(form):
    ours, theirs = both("util.nest")
    assert ours.flatten(form) == theirs.flatten(form)
    made = [nest.map_structure(lambda x: f"{x}!", form) for nest in (ours, theirs)]
    assert made[0] == made[1] and type(made[0]) is type(made[1])


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_functions_are_told_the_way_to_a_leaf(form):
    ours, theirs = both("util.nest")
    by_path = [
        nest.map_structure_with_tuple_paths(lambda path, x, y: (path, x, y), form, form)
        for nest in (ours, theirs)
    ]
    assert by_path[0] == by_path[1]


PAIRS = [
    ([0, 0], [[1, 2], 3]),
    (Point(0, 0), Point([1], {"a": 2})),
    ({"a": 0, "b": [0]}, {"b": [[1, 2]], "a": 3}),
    (0, [1, 2]),
    ([0, [0]], [1, 2]),
    ([0], [1, 2]),
    ((0, 0), [1, 2]),
    ({"a": 0}, {"b": 1}),
    (Point(0, 0), Alike(1, 2)),
    ({"a": 0}, OwnMapping({"a": 1})),
    ([0], OwnList([1])),
]


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("check_types", [True, False])
@pytest.mark.parametrize("function", ["flatten_up_to", "assert_shallow_structure"])
def test_shallow_structures(pair, check_types, function):
    found = []
    for nest in both("util.nest"):
        try:
            found.append(getattr(nest, function)(*pair, check_types=check_types))
        except (TypeError, ValueError) as error:
            found.append(type(error))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "pair", [*PAIRS, ([1, (2,)], [3, [4]]), (Point(0, 0), (1, 2)), (DEEP, DEEP)], ids=repr
)
@pytest.mark.parametrize("check_types", [True, False])
def test_the_same_structures_are_the_same(pair, check_types):
    found = []
    for nest in both("util.nest"):
        try:
            nest.assert_same_structure(*pair, check_types=check_types)
            found.append(None)
        except (TypeError, ValueError) as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_sparse_tensors_are_leaves_unless_they_are_to_be_expanded():
    for library, nest in zip((tf, reference), both("util.nest"), strict=True):
        with library.Graph().as_default():
            sparse = library.SparseTensor([[0, 1]], [2.0], [1, 2])
            slices = library.IndexedSlices(library.constant([1.0]), library.constant([0]))
            form = {"s": sparse, "i": [slices]}
            assert nest.flatten(form) == [slices, sparse]
            assert not nest.is_nested(sparse)
            assert len(nest.flatten([sparse], expand_composites=True)) in (1, 3)
    with tf.Graph().as_default():
        sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 2])
        parts = tf.nest.flatten([sparse], expand_composites=True)
        assert parts == [sparse.indices, sparse.values, sparse.dense_shape]
        (again,) = tf.nest.pack_sequence_as([sparse], parts, expand_composites=True)
        assert again.values is sparse.values


def test_texts_and_arrays_are_leaves():
    leaves = [bytearray(b"ab"), memoryview(b"ab"), array("i", [1, 2]), np.zeros(2)]
    assert [leaf is other for leaf, other in zip(tf.nest.flatten(leaves), leaves)] == [True] * 4


def test_a_list_is_no_structure_of_elements():
    form, deep = {"b": [1, 2], "a": (3, [4])}, {"b": (5, 6), "a": (7, [[8]])}
    for nest in both("data.util.nest"):
        assert nest.flatten(form) == [3, [4], [1, 2]]
        assert not nest.is_nested([1]) and nest.is_nested((1,)) and nest.is_nested({})
        packed = nest.pack_sequence_as(form, ["x", "y", ["z"]])
        assert packed == {"b": ["z"], "a": ("x", "y")}
        both_of = nest.map_structure(lambda x, y: [x, y], form, packed)
        assert both_of == {"b": [[1, 2], ["z"]], "a": ([3, "x"], [[4], "y"])}
        nest.assert_same_structure(form, packed)
        with pytest.raises(ValueError):
            nest.assert_same_structure(form, deep)
        assert nest.flatten_up_to(form, deep) == [7, [[8]], (5, 6)]
        assert nest.map_structure_up_to(form, repr, deep) == {"b": "(5, 6)", "a": ("7", "[[8]]")}
        with pytest.raises(ValueError):
            nest.pack_sequence_as(form, [1])
        with pytest.raises(TypeError):
            nest.assert_shallow_structure(deep, form)


def test_flat_dicts():
    given = {("a", "b"): (1, 2), "c": 3}
    ours, theirs = both("util.nest")
    assert ours.flatten_dict_items(given) == theirs.flatten_dict_items(given)
    for nest in (ours, theirs):
        with pytest.raises(ValueError):
            nest.flatten_dict_items({("a", "b"): (1, 2), "a": 3})


def test_the_ways_to_what_is_below_a_shallow_structure():
    shallow, deep = {"a": 0, "b": Point(0, 0)}, {"b": Point([1], 2), "a": (3,)}
    for nest in both("util.nest"):
        found = [(("a",), (3,)), (("b", "y"), [1]), (("b", "x"), 2)]
        assert nest.flatten_with_tuple_paths_up_to(shallow, deep) == found
        assert list(nest.yield_flat_paths(shallow)) == [path for path, _ in found]
        made = nest.map_structure_with_tuple_paths_up_to(
            shallow, lambda path, x, y: (path[-1], x, y), deep, deep
        )
        assert made == {"a": ("a", (3,), (3,)), "b": Point(("y", [1], [1]), ("x", 2, 2))}
        assert nest.map_structure_up_to(shallow, repr, deep)["b"] == Point("[1]", "2")
        assert nest.map_structure_with_paths(lambda path, x: path, deep) == {
            "b": Point(["b/y/0"], "b/x"),
            "a": ("a/0",),
        }


def test_the_upper_part_of_a_structure():
    for nest in both("util.nest"):
        look = nest.get_traverse_shallow_structure
        assert look(lambda s: not isinstance(s, tuple), [1, (2, 3), [4]]) == [True, False, [True]]


@pytest.mark.parametrize(
    "name", ["/job:ps/cpu:0", "/job:worker/task:1", "", "/device:GPU:*", "/gpu:2"]
)
def test_names_of_devices(name):
    ours, theirs = both("framework.device")
    assert ours.canonical_name(name) == theirs.canonical_name(name)
    op = collections.namedtuple("Op", "device")("/job:ps/task:3")
    assert ours.merge_device(name)(op) == ours.canonical_name(
        tf.DeviceSpec.from_string(name).make_merged_spec(tf.DeviceSpec.from_string(op.device))
    )


@pytest.mark.parametrize("scope", [None, "", "outer", "outer/"])
@pytest.mark.parametrize("name", ["outer/inner/w:0", "inner/w", "outers/w"])
def test_names_seen_from_a_scope(scope, name):
    ours, theirs = both("framework.ops")
    assert ours.prepend_name_scope(name, scope) == theirs.prepend_name_scope(name, scope)
    if scope != "outer/":  # TensorFlow takes the name of a scope for a pattern
        assert ours.strip_name_scope(name, scope) == theirs.strip_name_scope(name, scope)


def test_decorators_are_unwrapped():
    for decorator in both("util.tf_decorator"):

        def inside(x):
            """Adds one."""
            return x + 1

        def outside(x):
            return inside(x) * 2

        made = decorator.make_decorator(inside, outside, "doubled")
        assert (made(1), made.__name__, made.__doc__) == (4, "inside", "Adds one.")
        decorators, target = decorator.unwrap(made)
        assert [d.decorator_name for d in decorators] == ["doubled"] and target is inside
        assert decorator.unwrap(inside) == ([], inside)


def test_a_linear_map_with_its_variables():
    x, h = np.float32([[1, 2]]), np.float32([[3]])
    module = importlib.import_module("runnel.contrib.rnn.python.ops.core_rnn_cell")
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("cell"):
            linear = module._Linear([x_ := tf.constant(x), tf.constant(h)], 4, True)
            y = linear([x_, tf.constant(h)])
        assert [v.name for v in tf.trainable_variables()] == ["cell/kernel:0", "cell/bias:0"]
        sess.run(tf.global_variables_initializer())
        kernel, value = sess.run([tf.trainable_variables()[0], y])
        np.testing.assert_allclose(value, np.concatenate([x, h], 1) @ kernel, rtol=1e-6)
