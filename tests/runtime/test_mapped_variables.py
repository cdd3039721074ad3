"""Variables in memory-mapped files: the same numbers as in memory, by the same graph.

The oracle of every program here is itself, with its variables in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel import mapped_array
from runnel.graph.permitted_files import VARIABLE
from runnel.runtime.interpret import block_calls
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.execution_modes import MODES, config_for

ROWS, WIDTH = 40, 6

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "lazy adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
}
INITIALIZERS: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "zeros": tf.zeros_initializer,
    "ones": tf.ones_initializer,
    "constant": lambda: tf.constant_initializer(0.25),
    "uniform": lambda: tf.random_uniform_initializer(-1.0, 1.0),
    "normal": lambda: tf.random_normal_initializer(0.5, 0.1),
    "truncated": lambda: tf.truncated_normal_initializer(stddev=0.3),
    "scaled": lambda: tf.variance_scaling_initializer(),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, so that small tables have many."""
    monkeypatch.setattr(mapped_array, "BLOCK_BYTES", 256)


@pytest.fixture
def folder(tmp_path: Any) -> str:
    return str(tmp_path / "tables")


def values_of(sess: Any) -> list[Any]:
    """What the variables of a session hold, as they hold it."""
    cells = sess._backend.task._containers[""]
    return [cells[v.op.name].value for v in tf.global_variables()]


def is_in_files(sess: Any, name: str) -> bool:
    """True when each variable whose name begins so, but for single numbers, is in a mapped file."""
    cells = sess._backend.task._containers[""]
    found = [cell.value for key, cell in cells.items() if key.startswith(name)]
    return bool(found) and all(mapped_array.is_mapped(v) for v in found if np.ndim(v))


def lookup(table: Any, ids: Any, combiner: str | None) -> Any:
    if combiner is None:
        return tf.reduce_sum(tf.nn.embedding_lookup(table, ids, "div"), 1)
    everywhere = tf.where(tf.ones_like(ids, tf.bool))
    sparse = tf.SparseTensor(everywhere, tf.reshape(ids, [-1]), tf.shape(ids, out_type=tf.int64))
    return tf.nn.embedding_lookup_sparse(table, sparse, None, "div", combiner=combiner)


def trained(
    folder: str | None,
    batches: list[np.ndarray],
    tier: str = INTERPRETED,
    optimizer: str = "adagrad",
    initializer: str = "default",
    shards: int = 1,
    resource: bool = False,
    combiner: str | None = None,
    dtype: Any = tf.float32,
) -> tuple[list[Any], list[Any]]:
    """The losses of some steps, and the variables after them."""
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        ids = tf.placeholder(tf.int64, [None, None])
        with tf.mapped_variables(folder):
            table = tf.get_variable(
                "table",
                [ROWS, WIDTH],
                dtype,
                INITIALIZERS[initializer](),
                partitioner=tf.fixed_size_partitioner(shards) if shards > 1 else None,
                use_resource=resource,
            )
        weights = tf.get_variable("weights", [WIDTH, 3], dtype)
        out = tf.matmul(lookup(table, ids, combiner), weights)
        loss = tf.reduce_mean(tf.square(out - 1))
        train = OPTIMIZERS[optimizer]().minimize(loss)
        with session(tier) as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, train], {ids: batch})[0] for batch in batches]
            if folder is not None:
                assert is_in_files(sess, "table")
                assert not any(map(mapped_array.is_mapped, values_of(sess)[shards : shards + 1]))
            return losses, sess.run(tf.global_variables())


def batches_of(seed: int, count: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, ROWS, (4, 3)) for _ in range(count)]


def assert_equal(one: Any, other: Any) -> None:
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_training_in_a_file_gives_the_bits_of_training_in_memory(optimizer, resource, folder):
    given = {"optimizer": optimizer, "resource": resource, "batches": batches_of(1, 4)}
    assert_equal(trained(folder, **given), trained(None, **given))


@settings(max_examples=12, deadline=None)
@given(
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    initializer=st.sampled_from(sorted(INITIALIZERS)),
    shards=st.integers(1, 3),
    resource=st.booleans(),
    combiner=st.sampled_from([None, "sum", "mean", "sqrtn"]),
    dtype=st.sampled_from([tf.float32, tf.float64]),
    seed=st.integers(0, 100),
)
def test_any_table_trains_the_same_in_files(tmp_path_factory, seed, **options):
    where = str(tmp_path_factory.getbasetemp() / "tables")
    batches = batches_of(seed, 3)
    found, wanted = trained(where, batches, **options), trained(None, batches, **options)
    assert_equal(found, wanted)


@pytest.mark.parametrize("optimizer", ["descent", "adagrad", "lazy adam"])
def test_what_is_around_a_table_is_compiled_and_trains_the_same(optimizer, folder):
    given = {"optimizer": optimizer, "batches": batches_of(2, 4)}
    found, wanted = trained(folder, tier=COMPILED, **given), trained(None, **given)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_compiled_step_is_a_lookup_a_model_and_an_update(folder):
    ids = tf.placeholder(tf.int64, [4])
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [ROWS, WIDTH])
    weights = tf.get_variable("weights", [WIDTH, 3])
    loss = tf.reduce_sum(tf.square(tf.matmul(tf.gather(table, ids), weights)))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {ids: [1, 2, 3, 1]})
        plan = list(sess._prepared.values())[-1].plan
        segments = [runner.segment for runner in plan.schedule.runners]
        compiled = [r for r in plan.schedule.runners if r.segment.compilable]
        assert any(n.op_def.name == "MatMul" for r in compiled for n in r.segment.nodes)
        assert not any(cell.folder for r in compiled for cell, _ in r.state.cells())
        updating = [s for s in segments if any(n.op_def.name == "ScatterUpdate" for n in s.nodes)]
        # Rows are looked up and set again under one lock, so that no other step's update is lost.
        [last] = updating
        assert not last.compilable
        assert sum(n.op_def.name == "GatherV2" for n in last.nodes) == 2


@pytest.mark.parametrize(
    "initializer,dtype",
    [
        *((name, dtype) for name in INITIALIZERS for dtype in (tf.float16, tf.float32, tf.float64)),
        *(("zeros", tf.int32), ("ones", tf.int32)),
    ],
    ids=str,
)
def test_a_table_begins_with_the_numbers_that_it_has_in_memory(initializer, dtype, folder):
    def initial(folder: str | None) -> list[Any]:
        with tf.Graph().as_default(), session(INTERPRETED) as sess:
            tf.set_random_seed(3)
            with tf.mapped_variables(folder):
                for i, shape in enumerate(([37, 5], [123], [3, 4, 7], [1, 300])):
                    tf.get_variable(f"v{i}", shape, dtype, INITIALIZERS[initializer]())
            sess.run(tf.global_variables_initializer())
            return sess.run(tf.global_variables())

    assert_equal(initial(folder), initial(None))


def test_values_for_a_table_are_never_there_as_one_array(folder, monkeypatch):
    largest = 0
    original = mapped_array.set_rows

    def watched(array: Any, rows: slice, block: Any) -> None:
        nonlocal largest
        largest = max(largest, block.nbytes)
        original(array, rows, block)

    monkeypatch.setattr("runnel.ops.block_value.set_rows", watched)
    with tf.mapped_variables(folder):
        tf.get_variable("table", [1000, 8], initializer=tf.random_normal_initializer(0.5, 0.1))
        tf.get_variable("other", [1000, 8], initializer=tf.constant_initializer(2.0))
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        assert 0 < largest <= 256
    constants = [o for o in tf.get_default_graph().get_operations() if o.type == "Const"]
    assert all(op.attrs["value"].size < 10 for op in constants)


def test_a_step_trains_rows_of_one_table_and_makes_another(folder):
    def run(folder: str | None) -> list[Any]:
        with tf.Graph().as_default():
            with tf.mapped_variables(folder):
                one = tf.get_variable("one", [30_000, 8], initializer=tf.ones_initializer())
                two = tf.get_variable("two", [20_000, 8], initializer=tf.ones_initializer())
            drawn = tf.random.normal([20_000, 8], seed=3)  # as many as the rows
            rows = tf.gather(one, np.arange(20_000))
            made = two.assign(drawn * 2.0 + 1.0).op
            both = tf.group(made, tf.scatter_update(one, np.arange(20_000), rows * 3.0 - 1.0))
            with session(INTERPRETED) as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(both)
                return sess.run([one, two])

    assert_equal(run(folder), run(None))


def test_a_table_may_be_assigned_as_a_whole_and_by_another(folder):
    with tf.mapped_variables(folder):
        one = tf.get_variable("one", [10, 3], initializer=tf.zeros_initializer())
        two = tf.get_variable("two", [10, 3], initializer=tf.ones_initializer())
    value = np.arange(30, dtype=np.float32).reshape(10, 3)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(one.assign(value).op)
        sess.run(two.assign(one).op)
        sess.run(tf.scatter_add(one, [2], [[1.0, 1.0, 1.0]]).op)
        np.testing.assert_array_equal(sess.run(two), value)
        np.testing.assert_array_equal(sess.run(one)[2], value[2] + 1)
        np.testing.assert_array_equal(sess.run(one.assign_add(value)), sess.run(one))
        assert is_in_files(sess, "one") and is_in_files(sess, "two")


@pytest.mark.parametrize("mode", MODES)
def test_tables_are_used_and_updated_in_loops_and_branches(mode, folder):
    def run(folder: str | None) -> list[Any]:
        with tf.Graph().as_default():
            with tf.mapped_variables(folder):
                table = tf.get_variable("table", [10, 3], initializer=tf.ones_initializer())
            flag = tf.placeholder(tf.bool, [])
            total = tf.while_loop(
                lambda i, _: i < 5,
                lambda i, t: (i + 1, t + tf.reduce_sum(tf.gather(table, [i, i + 1]) * 2.0)),
                (0, 0.0),
            )[1]
            with tf.control_dependencies([total]):
                updated = tf.cond(
                    flag,
                    lambda: tf.identity(tf.scatter_add(table, [1, 4], tf.ones([2, 3]))),
                    lambda: tf.identity(table),
                )
            with tf.Session(config=config_for(mode)) as sess:
                sess.run(tf.global_variables_initializer())
                out = [sess.run([total, updated], {flag: f}) for f in (True, False, True)]
                if folder is not None:
                    assert is_in_files(sess, "table")
                return [out, sess.run(table)]

    assert_equal(run(folder), run(None))


def test_a_step_that_fails_has_changed_nothing(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", initializer=np.zeros((4, 2), np.float32))
    x = tf.placeholder(tf.float32, [])
    update = tf.scatter_update(table, [1], [[5.0, 6.0]])
    checked = tf.group(update, tf.check_numerics(x, "x"))
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="x"):
            sess.run(checked, {x: np.nan})
        np.testing.assert_array_equal(sess.run(table), np.zeros((4, 2)))
        sess.run(checked, {x: 1.0})
        np.testing.assert_array_equal(sess.run(table)[1], [5, 6])


def test_a_step_that_is_cancelled_stops_between_blocks(folder, monkeypatch):
    made = []
    original = mapped_array.set_rows

    def watched(*arguments: Any) -> None:
        made.append(arguments)
        if len(made) == 3:
            sess._steps.cancel("enough")
        original(*arguments)

    monkeypatch.setattr("runnel.ops.block_value.set_rows", watched)
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [1000, 8], initializer=tf.ones_initializer())
    with session(INTERPRETED) as sess:
        with pytest.raises(tf.errors.CancelledError, match="enough"):
            sess.run(table.initializer)
        assert len(made) == 3
        assert not sess.run(tf.is_variable_initialized(table))


def test_a_part_of_a_table_is_taken_by_what_is_compiled(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.ones_initializer())
    product = tf.matmul(table[2:5], tf.ones([WIDTH, 2]))
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(product), np.full((3, 2), WIDTH))
        np.testing.assert_array_equal(sess.run(table[7]), np.ones(WIDTH))
        runners = [r for p in sess._prepared.values() for r in p.plan.schedule.runners]
        compiled = {n.op_def.name for r in runners if r.is_compiled for n in r.segment.nodes}
        assert "MatMul" in compiled and "StridedSlice" not in compiled


def test_someone_who_holds_on_to_a_table_sees_no_later_update(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [10, 3], initializer=tf.ones_initializer())
    update = tf.scatter_add(table, [1], [[1.0, 1.0, 1.0]]).op
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        [held] = values_of(sess)
        sess.run(update)
        np.testing.assert_array_equal(held, np.ones((10, 3)))
        np.testing.assert_array_equal(sess.run(table)[1], [2, 2, 2])
        assert is_in_files(sess, "table")


# Checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "saved,restored,resource,reshape",
    [(1, 1, False, False), (1, 3, True, False), (3, 1, False, True), (3, 2, True, True)],
)
def test_checkpoints_go_from_any_shards_to_any_other(
    saved, restored, resource, reshape, folder, tmp_path
):
    def build(shards: int, folder: str | None) -> None:
        tf.set_random_seed(5)
        with tf.mapped_variables(folder):
            table = tf.get_variable(
                "table",
                [ROWS, WIDTH],
                partitioner=tf.fixed_size_partitioner(shards) if shards > 1 else None,
                use_resource=resource,
            )
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [3, 39, 17], "div")))
        build.train = tf.train.AdagradOptimizer(0.1).minimize(loss)

    prefix = str(tmp_path / "model")
    wholes = []
    for write, read in ((folder, None), (None, folder)):
        with tf.Graph().as_default(), session(INTERPRETED) as sess:
            build(saved, write)
            sess.run(tf.global_variables_initializer())
            sess.run(build.train)
            tf.train.Saver(reshape=reshape).save(sess, prefix)
            wholes.append(np.concatenate(sess.run(tf.global_variables()[:saved])))
        with tf.Graph().as_default(), session(INTERPRETED) as sess:
            build(restored, read)
            tf.train.Saver(reshape=reshape).restore(sess, prefix)
            found = sess.run(tf.global_variables())
            assert read is None or is_in_files(sess, "table")
        wholes.append(np.concatenate(found[:restored]))
        np.testing.assert_array_equal(wholes[-1], wholes[-2])
    np.testing.assert_array_equal(wholes[0], wholes[2])


def test_tables_cut_by_columns_are_restored_in_blocks(folder, tmp_path):
    prefix = str(tmp_path / "model")

    def table(cut: tuple[int, int], folder: str | None) -> Any:
        with tf.mapped_variables(folder):
            return tf.create_partitioned_variables(
                [ROWS, WIDTH], list(cut), tf.random_normal_initializer(seed=1), name="table"
            )

    with tf.Graph().as_default(), session(INTERPRETED) as sess:
        parts = table((1, 3), None)
        sess.run(tf.global_variables_initializer())
        tf.train.Saver({"table": parts}).save(sess, prefix)
        wanted = np.concatenate(sess.run(parts), 1)
    with tf.Graph().as_default(), session(INTERPRETED) as sess:
        parts = table((4, 1), folder)
        tf.train.Saver({"table": parts}).restore(sess, prefix)
        np.testing.assert_array_equal(np.concatenate(sess.run(parts), 0), wanted)


def test_a_damaged_checkpoint_leaves_the_table_as_it_was(folder, tmp_path):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [ROWS, WIDTH])
    saver = tf.train.Saver()
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        prefix = saver.save(sess, str(tmp_path / "model"))
        data = tmp_path / "model.data-00000-of-00001"
        damaged = bytearray(data.read_bytes())
        damaged[-3] ^= 1
        data.write_bytes(damaged)
        before = sess.run(table.assign_add(tf.ones([ROWS, WIDTH])))
        with pytest.raises(tf.errors.DataLossError, match="checksum") as info:
            saver.restore(sess, prefix)
        assert info.value.op.type == "RestoreV2"
        np.testing.assert_array_equal(sess.run(table), before)


# Files ----------------------------------------------------------------------------------------


def open_files(folder: str) -> list[str]:
    """The files in ``folder`` that this process has open, be they removed or not."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if target.startswith(folder):
            found.append(target)
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_files_have_no_names_and_are_gone_with_their_session(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [ROWS, WIDTH])
    sess = session(INTERPRETED)
    sess.run(tf.global_variables_initializer())
    sess.run(table.initializer)
    assert os.listdir(folder) == []
    assert len(open_files(folder)) == 1
    sess.close()
    assert open_files(folder) == []


def test_a_full_disk_is_an_error_that_names_the_variable_and_the_folder(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [1 << 30, 1 << 20], initializer=tf.zeros_initializer())
    with session(INTERPRETED) as sess:
        with pytest.raises(tf.errors.ResourceExhaustedError) as info:
            sess.run(table.initializer)
        assert folder in str(info.value) and "4,503,599,627,370,496 bytes" in str(info.value)
        assert "table" in info.value.op.name
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            sess.run(tf.gather(table, [1]))


def test_a_disk_that_fills_up_meanwhile_is_an_error_too(folder, monkeypatch):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [4, 4], initializer=tf.ones_initializer())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with session(INTERPRETED) as sess:
        sess.run(table.initializer)
        monkeypatch.setattr(os, "posix_fallocate", full)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left"):
            sess.run(table.assign(tf.zeros([4, 4])).op)
        np.testing.assert_array_equal(sess.run(table), np.ones((4, 4)))


def test_a_process_for_the_graphs_of_others_maps_only_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "allowed"))
    with tf.mapped_variables(str(tmp_path / "elsewhere")):
        outside = tf.get_variable("outside", [4], initializer=tf.zeros_initializer())
    with tf.mapped_variables("tables"):
        inside = tf.get_variable("inside", [4], initializer=tf.zeros_initializer())
    with session(INTERPRETED) as sess:
        with pytest.raises(tf.errors.PermissionDeniedError, match="outside of"):
            sess.run(outside.initializer)
        sess.run(inside.initializer)
        assert is_in_files(sess, "inside")
    assert sorted(os.listdir(tmp_path)) == ["allowed"]


# What needs the whole value -------------------------------------------------------------------


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(block_calls, "available_memory", lambda: 100)
    return None


@pytest.mark.usefixtures("little_memory")
def test_what_needs_more_memory_than_there_is_says_so(folder):
    with tf.mapped_variables(folder):
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.ones_initializer())
    total = tf.reduce_sum(table, name="total")
    slow = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(table, [1])))
    lazy = tf.contrib.opt.LazyAdamOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(table, [1])))
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.ResourceExhaustedError, match="'table'") as info:
            sess.run(total)
        assert info.value.op.name == "total"
        for fetch in (table, table.read_value()):
            with pytest.raises(tf.errors.ResourceExhaustedError, match="960 bytes"):
                sess.run(fetch)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="LazyAdam"):
            sess.run(slow)
        sess.run(lazy)
        assert sess.run(tf.gather(table, [1]))[0, 0] == pytest.approx(0.9)
        assert sess.run(tf.shape(table)).tolist() == [ROWS, WIDTH]


# Descriptions ---------------------------------------------------------------------------------


def test_only_what_can_be_in_a_file_is(folder):
    with tf.mapped_variables(folder):
        tf.get_variable("number", [], initializer=tf.zeros_initializer())
        tf.get_variable("words", initializer=np.array([b"a", b"b"], object))
        with tf.mapped_variables(None):
            tf.get_variable("memory", [3])
        tf.get_variable("file", [3])
    found = {v.op.name: "_mapped_folder" in v.op.attrs for v in tf.global_variables()}
    assert found == {"number": False, "words": False, "memory": False, "file": True}


def test_a_graph_that_was_exported_has_its_tables_in_files(folder):
    with tf.Graph().as_default() as graph:
        with tf.mapped_variables(folder):
            table = tf.get_variable("table", [4, 2], initializer=tf.ones_initializer())
        tf.gather(table, [1], name="row")
        meta = tf.train.export_meta_graph()
        del graph
    with tf.Graph().as_default(), session(INTERPRETED) as sess:
        tf.train.import_meta_graph(meta)
        sess.run(tf.global_variables_initializer())
        assert is_in_files(sess, "table")
        np.testing.assert_array_equal(sess.run("row:0"), [[1, 1]])
