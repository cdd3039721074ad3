"""What every variable does, whichever kind it is, interpreted and compiled."""

import threading

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

TIERS = pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
KINDS = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])


def initialized(tier):
    sess = session(tier)
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return sess


@KINDS
@TIERS
class TestValues:
    def test_it_begins_with_its_initial_value(self, resource, tier):
        v = tf.Variable([[1.0, 2.0]], use_resource=resource)
        with initialized(tier) as sess:
            np.testing.assert_array_equal(sess.run(v), [[1.0, 2.0]])
            np.testing.assert_array_equal(sess.run(v.initial_value), [[1.0, 2.0]])
            np.testing.assert_array_equal(v.eval(sess), [[1.0, 2.0]])

    def test_updates_last_from_step_to_step(self, resource, tier):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        add, subtract, replace = v.assign_add([1, 1]), v.assign_sub([3, 3]), v.assign([7, 8])
        with initialized(tier) as sess:
            np.testing.assert_array_equal(sess.run(add), [2, 3])
            np.testing.assert_array_equal(sess.run(add), [3, 4])
            np.testing.assert_array_equal(sess.run(subtract), [0, 1])
            np.testing.assert_array_equal(sess.run(v), [0, 1])
            np.testing.assert_array_equal(sess.run(replace), [7, 8])
            np.testing.assert_array_equal(sess.run(v * 2.0), [14, 16])

    def test_without_read_value_an_update_is_an_operation(self, resource, tier):
        v = tf.Variable(1.0, use_resource=resource)
        ops = [
            v.assign(2.0, read_value=False),
            v.assign_add(1.0, read_value=False),
            v.assign_sub(5.0, read_value=False),
        ]
        assert all(isinstance(op, tf.Operation) for op in ops)
        with initialized(tier) as sess:
            assert [sess.run(op) for op in ops] == [None] * 3
            assert sess.run(v) == -2.0

    def test_sessions_have_values_of_their_own(self, resource, tier):
        v = tf.Variable(1.0, use_resource=resource)
        with initialized(tier) as one, initialized(tier) as two:
            one.run(v.assign(5.0))
            assert (one.run(v), two.run(v)) == (5.0, 1.0)

    def test_a_read_happens_after_its_control_inputs(self, resource, tier):
        v = tf.Variable(1.0, use_resource=resource)
        before = v.read_value()
        with tf.control_dependencies([before]):
            update = v.assign_add(1.0)
        with tf.control_dependencies([update]):
            after = v.read_value()
        with initialized(tier) as sess:
            assert sess.run([before, after]) == [1.0, 2.0]
            assert sess.run([after, before]) == [3.0, 2.0]

    def test_a_step_that_reads_and_updates_follows_the_order_of_construction(self, resource, tier):
        v = tf.Variable(1.0, use_resource=resource)
        read = v.read_value() * 10.0
        first = v.assign_add(1.0)
        doubled = v.assign(v.read_value() * 2.0)
        with initialized(tier) as sess:
            # An update's own result is the value that it left; a fetched variable is read last.
            assert sess.run([read, tf.identity(first), doubled.op, v])[0] == 10.0
            assert sess.run(v) == 4.0

    def test_load_sets_the_value_without_changing_the_graph(self, resource, tier):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        with initialized(tier) as sess:
            operations = len(tf.get_default_graph().get_operations())
            v.load([5.0, 6.0], sess)
            assert len(tf.get_default_graph().get_operations()) == operations
            np.testing.assert_array_equal(sess.run(v), [5.0, 6.0])

    def test_slices_can_be_assigned(self, resource, tier):
        v = tf.Variable(np.arange(12).reshape(3, 4), use_resource=resource)
        expected = np.arange(12).reshape(3, 4)
        cases = [
            (np.s_[0], [9, 9, 9, 9]),
            (np.s_[1:, 2], [7, 8]),
            (np.s_[::2, ::-2], [[1, 2], [3, 4]]),
            (np.s_[..., -1], [0, 0, 0]),
            (np.s_[1, 1], -1),
            (np.s_[:, np.newaxis, 0], [[4], [5], [6]]),
        ]
        updates = [v[key].assign(value) for key, value in cases]
        with initialized(tier) as sess:
            for update, (key, value) in zip(updates, cases, strict=True):
                expected[key] = value
                np.testing.assert_array_equal(sess.run(update), expected)

    def test_a_slice_beyond_the_end_fails_and_changes_nothing(self, resource, tier):
        v = tf.Variable([1, 2, 3], use_resource=resource)
        where = tf.placeholder(tf.int32, [])
        update = v[where].assign(9)
        with initialized(tier) as sess:
            with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)):
                sess.run(update, {where: 3})
            np.testing.assert_array_equal(sess.run(v), [1, 2, 3])

    def test_counting_stops_at_the_limit(self, resource, tier):
        v = tf.Variable(0, use_resource=resource)
        up = v.count_up_to(2)
        with initialized(tier) as sess:
            assert [sess.run(up), sess.run(up)] == [0, 1]
            for _ in range(2):
                with pytest.raises(tf.errors.OutOfRangeError, match="2"):
                    sess.run(up)
            assert sess.run(v) == 2

    def test_reading_before_initialising_names_the_variable(self, resource, tier):
        v = tf.Variable(1.0, use_resource=resource, name="weights")
        with session(tier) as sess:
            for fetch in (v, v + 1.0, v.assign_add(1.0)):
                with pytest.raises(tf.errors.FailedPreconditionError, match="weights"):
                    sess.run(fetch)
            sess.run(v.initializer)
            assert sess.run(v + 1.0) == 2.0

    def test_an_initial_value_may_depend_on_another_variable(self, resource, tier):
        a = tf.Variable(tf.random_uniform([3]), use_resource=resource)
        b = tf.Variable(a.initialized_value() * 2.0, use_resource=resource)
        c = tf.Variable(b + a, use_resource=resource)
        with initialized(tier) as sess:
            x, y, z = sess.run([a, b, c])
            np.testing.assert_allclose(y, 2 * x)
            np.testing.assert_allclose(z, 3 * x, rtol=1e-6)

    def test_initialized_value_works_in_any_order(self, resource, tier):
        a = tf.Variable(3.0, use_resource=resource)
        b = tf.Variable(a.initialized_value() * 2.0, use_resource=resource)
        with session(tier) as sess:
            sess.run(b.initializer)
            assert sess.run(b) == 6.0
            sess.run(a.assign(5.0))
            sess.run(b.initializer)
            assert sess.run(b) == 10.0

    def test_no_update_of_many_threads_is_lost(self, resource, tier):
        v = tf.Variable(0, use_resource=resource)
        w = tf.Variable(tf.zeros([4]), use_resource=resource)
        step = [
            v.assign_add(1, read_value=False),
            tf.scatter_add(w, [1, 1], [1.0, 2.0]).op,
        ]
        failures = []

        def work(sess):
            try:
                for _ in range(50):
                    sess.run(step)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        with initialized(tier) as sess:
            threads = [threading.Thread(target=work, args=(sess,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failures
            assert sess.run(v) == 400
            np.testing.assert_array_equal(sess.run(w), [0, 1200, 0, 0])


@TIERS
def test_every_element_type_can_be_stored(tier):
    kinds = [
        *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64, np.complex128),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        np.bool_,
    ]
    values = [np.array([1, 0, 1]).astype(kind) for kind in kinds]
    variables = [tf.Variable(value) for value in values]
    added = [v.assign_add(v) for v in variables if not v.dtype.base_dtype.is_bool]
    text = tf.Variable(["a", "b"])
    with initialized(tier) as sess:
        for value, found in zip(values, sess.run(variables), strict=True):
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)
        for value, found in zip(values, sess.run(added), strict=False):
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value + value)
        assert sess.run(text).tolist() == [b"a", b"b"]
        sess.run(text.assign(["c", "d"]))
        assert sess.run(text).tolist() == [b"c", b"d"]


@TIERS
def test_validate_shape_false_lets_the_shape_change(tier):
    x = tf.placeholder_with_default([1.0, 2.0], None)
    v = tf.Variable(x, validate_shape=False)
    assert v.shape.rank is None
    longer = tf.assign(v, [[1.0, 2.0, 3.0]], validate_shape=False)
    with initialized(tier) as sess:
        np.testing.assert_array_equal(sess.run(v), [1, 2])
        np.testing.assert_array_equal(sess.run(longer), [[1, 2, 3]])
        np.testing.assert_array_equal(sess.run(v + 1.0), [[2, 3, 4]])


def test_a_value_of_another_shape_is_refused_when_it_runs():
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32)
    with initialized(INTERPRETED) as sess:
        for update in (v.assign(x), v.assign_add(x), tf.scatter_add(v, [0, 1], x)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3,\)"):
                sess.run(update, {x: [1.0, 2.0, 3.0]})
        np.testing.assert_array_equal(sess.run(v), [1, 2])


@KINDS
def test_it_can_be_used_as_a_tensor(resource):
    v = tf.Variable([2.0, 4.0], use_resource=resource)
    n = tf.Variable([2, 4], use_resource=resource)
    m = tf.Variable([[1.0, 2.0]], use_resource=resource)
    b = tf.Variable([True, False], use_resource=resource)
    x, k = np.array([2.0, 4.0], np.float32), np.array([2, 4])
    results = {
        "add": (v + 1.0, x + 1),
        "radd": (1.0 + v, x + 1),
        "sub": (v - 1.0, x - 1),
        "rsub": (1.0 - v, 1 - x),
        "mul": (v * v, x * x),
        "div": (v / 4.0, x / 4),
        "rdiv": (1.0 / v, 1 / x),
        "floordiv": (n // 3, k // 3),
        "mod": (n % 3, k % 3),
        "pow": (v**2.0, x**2),
        "rpow": (2.0**v, 2**x),
        "neg": (-v, -x),
        "abs": (abs(-v), x),
        "lt": (v < 3.0, x < 3),
        "le": (v <= v, x <= x),
        "gt": (v > 3.0, x > 3),
        "ge": (v >= 3.0, x >= 3),
        "and": (b & True, np.array([True, False])),
        "or": (b | True, np.array([True, True])),
        "xor": (b ^ True, np.array([False, True])),
        "invert": (~b, np.array([False, True])),
        "matmul": (m @ tf.constant([[1.0], [1.0]]), np.array([[3.0]])),
        "getitem": (v[1:], x[1:]),
        "array": (x + v, x + x),
        "tensor": (tf.constant(1.0) + v, x + 1),
        "function": (tf.reduce_sum(v), x.sum()),
    }
    with initialized(INTERPRETED) as sess:
        for name, (tensor, expected) in results.items():
            assert isinstance(tensor, tf.Tensor), name
            np.testing.assert_allclose(sess.run(tensor), expected, err_msg=name)


def test_operators_registered_later_work_too(monkeypatch):
    v = tf.Variable([1, 2])
    with pytest.raises(TypeError):
        v << 1
    monkeypatch.setattr(tf.Tensor, "__lshift__", lambda a, b: a * 2**b, raising=False)
    with initialized(INTERPRETED) as sess:
        np.testing.assert_array_equal(sess.run(v << 3), [8, 16])


def test_it_is_equal_to_itself_only_and_can_be_a_key():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    assert v == v and v != w
    assert {v: 1, w: 2}[w] == 2
    with pytest.raises(TypeError, match="unstack"):
        iter(v)


def test_what_it_says_of_itself():
    def unit(x):
        return x

    with tf.device("/job:ps"), tf.name_scope("scope"):
        v = tf.Variable([1.0, 2.0], name="v", constraint=unit, trainable=False)
    assert v.name == "scope/v:0" and v._shared_name == "scope/v"
    assert v.op.type == "VariableV2" and v.graph is tf.get_default_graph()
    assert v.device == "/job:ps" and v.constraint is unit and v.trainable is False
    assert v.dtype == tf.float32.as_ref and v.shape.as_list() == v.get_shape().as_list() == [2]
    assert repr(v) == "<tf.Variable 'scope/v:0' shape=(2,) dtype=float32_ref>"
    assert tf.convert_to_tensor(v) is v.value()
    r = tf.Variable([1.0], use_resource=True, name="r")
    assert r.handle.dtype == tf.resource and r.dtype == tf.float32 and r.op.type == "VarHandleOp"
    assert isinstance(v, tf.Variable) and isinstance(r, tf.Variable)
    with pytest.raises(ValueError, match="float32"):
        tf.convert_to_tensor(v, dtype=tf.int32)


def test_set_shape_adds_to_what_is_known():
    v = tf.Variable(tf.placeholder(tf.float32, [None, 2]), validate_shape=False)
    v.set_shape([3, None])
    v.set_shape([None, 2])
    assert v.shape.as_list() == v.value().shape.as_list() == [3, 2]


@KINDS
def test_a_variable_can_be_fed(resource):
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    with initialized(INTERPRETED) as sess:
        np.testing.assert_array_equal(sess.run(v, {v: [5.0, 6.0]}), [5.0, 6.0])
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])


@KINDS
def test_a_variable_survives_the_exchange_by_proto(resource):
    with tf.name_scope("s"):
        v = tf.Variable([1.0, 2.0], use_resource=resource, trainable=False, name="v")
    again = tf.Variable.from_proto(v.to_proto())
    assert type(again) is type(v)
    assert (again.name, again.op, again.initializer) == (v.name, v.op, v.initializer)
    assert again.trainable is False and again.initial_value is v.initial_value
    assert v.to_proto("elsewhere") is None
    inside = tf.Variable.from_proto(v.to_proto("s"), import_scope="s")
    with initialized(INTERPRETED) as sess:
        sess.run(again.assign_add([1.0, 1.0]))
        np.testing.assert_array_equal(sess.run(inside), [2.0, 3.0])
    with pytest.raises(ValueError, match="exclusive"):
        tf.Variable(1.0, variable_def=v.to_proto())


def test_mistakes_say_what_to_do():
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()
    with pytest.raises(ValueError, match="validate_shape=False"):
        tf.Variable(tf.placeholder(tf.float32), name="open")
    with pytest.raises(ValueError, match="list, tuple or set"):
        tf.Variable(1.0, collections="name")
    with pytest.raises(TypeError, match="IndexedSlices"):
        tf.Variable([1.0]).scatter_add([1.0])
    with pytest.raises(ValueError, match="session"):
        tf.Variable(1.0).load(2.0)
    with pytest.raises(TypeError, match="variable"):
        tf.assign(tf.constant(1.0), 2.0)


def test_initialisation_depends_on_no_control_dependencies():
    never_fed = tf.placeholder(tf.float32)
    with tf.control_dependencies([never_fed]):
        v = tf.Variable(lambda: tf.zeros([2]))
        w = tf.Variable([1.0], use_resource=True)
    with initialized(INTERPRETED) as sess:
        np.testing.assert_array_equal(sess.run(v), [0, 0])
        np.testing.assert_array_equal(sess.run(w), [1])


def test_it_is_made_in_the_graph_of_its_initial_value():
    other = tf.Graph()
    with other.as_default():
        value = tf.constant(1.0)
    v = tf.Variable(value)
    assert v.graph is other
    assert other.get_collection(tf.GraphKeys.GLOBAL_VARIABLES) == [v]
    assert v.assign(2.0).graph is other


def test_containers_keep_variables_apart():
    with tf.container("shelf"):
        v = tf.Variable(1.0)
        r = tf.Variable(1.0, use_resource=True)
    assert v.op.get_attr("container") == r.op.get_attr("container") == b"shelf"


def test_use_resource_by_scope_and_by_default():
    with tf.variable_scope("s", use_resource=True):
        assert tf.Variable(1.0).op.type == "VarHandleOp"
        assert tf.Variable(1.0, use_resource=False).op.type == "VariableV2"
    tf.enable_resource_variables()
    try:
        assert tf.resource_variables_enabled()
        assert tf.Variable(1.0).op.type == "VarHandleOp"
        assert tf.get_variable("v", [1]).op.type == "VarHandleOp"
    finally:
        tf.disable_resource_variables()
    assert tf.Variable(1.0).op.type == "VariableV2"


def test_gathering_from_a_resource_reads_the_rows_only():
    v = tf.Variable(np.arange(12.0).reshape(4, 3), use_resource=True)
    rows = v.sparse_read([[3], [0]])
    assert rows.op.type == "ResourceGather" and rows.shape.as_list() == [2, 1, 3]
    for tier in (INTERPRETED, COMPILED):
        with initialized(tier) as sess:
            np.testing.assert_array_equal(sess.run(rows), np.arange(12.0).reshape(4, 3)[[[3], [0]]])


def test_a_cached_variable_reads_before_it_changes():
    v = tf.Variable(1.0, caching_device="/cpu:0", use_resource=True)
    assert v.value() is v.value()
    update = v.assign_add(1.0)
    with initialized(INTERPRETED) as sess:
        old, new = sess.run([v + 0.0, update])
    assert (old, new) == (1.0, 2.0)
