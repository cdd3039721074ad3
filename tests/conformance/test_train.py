"""Training under TensorFlow and under runnel: the same variables, names and values.

The values of every optimizer over many steps are compared by ``test_programs.py``. The operations
differ on purpose: our updates are plain graph code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.conformance.same_program import collections_of, colocation, compare_values, tensorflow
from tests.programs.optimizers import OPTIMIZERS
from tests.programs.program import values

INITIAL = values(4, 3)


def _state(graph: Any) -> list[tuple[Any, ...]]:
    """What a checkpoint and a device see of a graph: its variables."""
    return sorted(
        (op.name, op.type, op.get_attr("dtype").name, _dims(op), op.device, colocation(op))
        for op in graph.get_operations()
        if op.type in ("VariableV2", "VarHandleOp")
    )


def _dims(op: Any) -> list[int]:
    shape = op.get_attr("shape")
    return [d.size for d in shape.dim] if hasattr(shape, "dim") else shape.as_list()


def compare_state(program: Any) -> None:
    """Asserts that both libraries make the same variables and fill the same collections.

    What ``program(tf)`` returns (names, usually) must be equal too.
    """
    found = []
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default() as graph:
            result = program(tf)
            collections = collections_of(graph)
            collections.pop("cond_context", None)
            found.append((_state(graph), collections, result))
    for ours, theirs in zip(*found):
        assert ours == theirs


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_variables_and_collections(name, resource):
    dtype = "float64" if name.endswith("float64") else "float32"

    def program(tf):
        step = tf.train.get_or_create_global_step()
        with tf.variable_scope("model", use_resource=resource):
            w = tf.get_variable("w", initializer=INITIAL.astype(dtype))
            with tf.device("/cpu:0"):
                table = tf.get_variable("table", initializer=INITIAL.astype(dtype))
        loss = tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(table, [0, 2, 0]))
        optimizer = OPTIMIZERS[name](tf, step)
        optimizer.minimize(loss, global_step=step)
        optimizer.minimize(loss)
        OPTIMIZERS[name](tf, step).minimize(loss, var_list=[w], name="second")
        return optimizer.get_slot_names(), [v.name for v in optimizer.variables()]

    compare_state(program)


def test_variables_in_scopes_and_parts():
    def program(tf):
        with tf.variable_scope("model", partitioner=tf.fixed_size_partitioner(2)):
            v = tf.get_variable("v", [5, 2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(v) - 1.0))
        with tf.variable_scope("training"), tf.name_scope("inner"):
            tf.train.AdamOptimizer(0.1).minimize(loss)
        parts = [v._get_save_slice_info() for v in tf.global_variables()]
        return [part and (part.full_name, part.spec) for part in parts]

    compare_state(program)


@pytest.mark.parametrize("debias", [False, True])
def test_variables_of_moving_averages(debias):
    def program(tf):
        with tf.variable_scope("layer"):
            w = tf.get_variable("w", initializer=INITIAL)
            r = tf.get_variable("r", initializer=INITIAL, use_resource=True)
        mean = tf.reduce_mean(w, 0, name="mean")
        ema = tf.train.ExponentialMovingAverage(0.9, zero_debias=debias)
        before = ema.average_name(w)
        with tf.variable_scope("averages"):
            ema.apply([w, r, mean])
        second = tf.train.ExponentialMovingAverage(0.5, zero_debias=debias, name="slow")
        second.apply([w, mean])
        named = [before, ema.average_name(r), second.average_name(r)]
        return named, {name: v.name for name, v in ema.variables_to_restore().items()}

    compare_state(program)


def test_the_global_step():
    def program(tf):
        with tf.name_scope("scope"), tf.variable_scope("variables"):
            step = tf.train.get_or_create_global_step()
        assert tf.train.get_global_step() is step
        v = tf.get_variable("v", initializer=INITIAL, use_resource=True)
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v), global_step=step)

    compare_state(program)


# Values ---------------------------------------------------------------------------------------


def _steps(train: Any, *fetches: Any) -> list[Any]:
    return [*[[train]] * 5, list(fetches)]


def test_clipped_gradients():
    def program(tf):
        a, b = tf.Variable(INITIAL), tf.Variable(INITIAL * 2, use_resource=True)
        loss = tf.reduce_sum(tf.exp(a)) + tf.reduce_sum(tf.square(tf.gather(b, [1, 1, 3])))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        grads, variables = zip(*optimizer.compute_gradients(loss))
        clipped, norm = tf.clip_by_global_norm(grads, 1.0)
        return _steps(optimizer.apply_gradients(zip(clipped, variables)), a, b, norm)

    compare_values(program, rtol=1e-5)


def test_two_optimizers_on_one_model():
    def program(tf):
        wide, deep = tf.Variable(INITIAL), tf.Variable(INITIAL)
        loss = tf.reduce_sum(tf.square(wide * deep - 1.0))
        step = tf.train.get_or_create_global_step()
        trains = [
            tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(
                loss, var_list=[wide]
            ),
            tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=[deep], global_step=step),
        ]
        return [*[[train] for train in trains * 4], [wide, deep, step]]

    compare_values(program, rtol=1e-5)


@pytest.mark.parametrize("resource", [False, True])
def test_constraints(resource):
    def program(tf):
        v = tf.Variable(
            INITIAL, constraint=lambda w: tf.clip_by_norm(w, 1.0), use_resource=resource
        )
        return _steps(tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.exp(v))), v)

    compare_values(program, rtol=1e-5)


def test_grad_loss_and_gates():
    def program(tf):
        v = tf.Variable(INITIAL)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        trains = [
            optimizer.minimize(v * v, grad_loss=tf.constant(INITIAL) + g, gate_gradients=g)
            for g in (optimizer.GATE_NONE, optimizer.GATE_OP, optimizer.GATE_GRAPH)
        ]
        return [*[[train] for train in trains], [v]]

    compare_values(program)


def test_decayed_and_fed_learning_rates():
    def program(tf):
        v = tf.Variable(INITIAL)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.polynomial_decay(0.2, step, 4, 0.01)
        train = tf.train.RMSPropOptimizer(rate, momentum=0.5).minimize(
            tf.reduce_sum(tf.exp(v)), global_step=step
        )
        return _steps(train, v, rate, step)

    compare_values(program, rtol=1e-5)


def test_partitioned_embeddings():
    def program(tf):
        table = tf.get_variable(
            "table",
            [7, 2],
            initializer=tf.ones_initializer(),
            partitioner=tf.fixed_size_partitioner(3),
        )
        weights = tf.Variable(values(2, 1))
        rows = tf.nn.embedding_lookup(table, [6, 0, 3, 6])
        loss = tf.reduce_sum(tf.square(tf.matmul(rows, weights) - 1.0))
        train = tf.train.AdagradOptimizer(0.2).minimize(loss)
        return _steps(train, tf.convert_to_tensor(table), weights)

    compare_values(program, rtol=1e-5)


def test_a_subclass_in_the_manner_of_tensorflow_1():
    def program(tf):
        class RowDescent(tf.train.Optimizer):
            def __init__(self, learning_rate):
                super().__init__(False, "RowDescent")
                self._lr = learning_rate

            def _prepare(self):
                self._lr_t = tf.convert_to_tensor(self._lr, name="learning_rate")

            def _create_slots(self, var_list):
                for v in var_list:
                    self._zeros_slot(v, "count", self._name)
                    self._get_or_make_slot(v, tf.constant(2.0), "scale", "scale")

            def _apply_dense(self, grad, var):
                count = self.get_slot(var, "count")
                counted = count.assign_add(tf.ones_like(grad))
                return tf.assign_sub(var, self._lr_t * grad / tf.sqrt(counted)).op

            def _apply_sparse(self, grad, var):
                count, scale = self.get_slot(var, "count"), self.get_slot(var, "scale")
                counted = tf.scatter_add(count, grad.indices, tf.ones_like(grad.values))
                rows = tf.gather(counted, grad.indices)
                step = self._lr_t * scale * grad.values / tf.sqrt(rows)
                return tf.scatter_sub(var, grad.indices, step).op

        dense, sparse = tf.Variable(INITIAL), tf.Variable(INITIAL)
        loss = tf.reduce_sum(tf.exp(dense)) + tf.reduce_sum(tf.square(tf.gather(sparse, [3, 0, 3])))
        optimizer = RowDescent(0.1)
        train = optimizer.minimize(loss)
        return _steps(train, dense, sparse, *optimizer.variables())

    compare_values(program, rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    sorted(name for name in OPTIMIZERS if not name.startswith(("proximal", "adagrad_da"))),
)
def test_float16(name):
    def program(tf):
        step = tf.train.get_or_create_global_step()
        v = tf.Variable(INITIAL.astype(np.float16))
        loss = tf.reduce_sum(tf.square(v - 0.5))
        return _steps(OPTIMIZERS[name](tf, step).minimize(loss, global_step=step), v)

    compare_values(program, rtol=2e-2, atol=1e-2)


# Mistakes: of the same kind -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (lambda tf, o: o.minimize(tf.constant(1.0), var_list=[]), ValueError),
        (lambda tf, o: o.minimize(tf.constant(1.0), var_list=[tf.Variable(1.0)]), ValueError),
        (lambda tf, o: o.minimize(tf.Variable(1) * 2), ValueError),
        (lambda tf, o: o.minimize(tf.Variable(1.0) * 2, gate_gradients=7), ValueError),
        (lambda tf, o: o.apply_gradients([]), ValueError),
        (lambda tf, o: o.apply_gradients([(None, tf.Variable(1.0))]), ValueError),
        (lambda tf, o: o.apply_gradients([(tf.zeros([3]), tf.Variable([1.0]))]), ValueError),
        (lambda tf, o: o.apply_gradients([(object(), tf.Variable(1.0))]), TypeError),
        (
            lambda tf, o: o.apply_gradients([(tf.zeros([], tf.float64), tf.Variable(1.0))]),
            TypeError,
        ),
        (lambda tf, o: o.apply_gradients([(1.0, tf.constant(1.0))]), NotImplementedError),
    ],
)
def test_mistakes(program, error):
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default(), pytest.raises(error):
            program(tf, tf.train.GradientDescentOptimizer(0.1))


# What we export, TensorFlow trains with ------------------------------------------------------


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_exported_training_step_runs_under_tensorflow(name, resource):
    dtype = "float64" if name.endswith("float64") else "float32"
    with runnel.Graph().as_default() as graph:
        step = runnel.train.get_or_create_global_step()
        dense, table = (
            runnel.get_variable(n, initializer=INITIAL.astype(dtype), use_resource=resource)
            for n in ("dense", "table")
        )
        picked = runnel.gather(table, [0, 2, 0])
        loss = runnel.reduce_sum(runnel.exp(dense)) + runnel.reduce_sum(picked * picked)
        train = OPTIMIZERS[name](runnel, step).minimize(loss, global_step=step, name="train")
        init = runnel.global_variables_initializer()
        seen = [runnel.identity(v.read_value(), name=f"{v.op.name}_now") for v in (dense, table)]
        with runnel.Session() as session:
            session.run(init)
            for _ in range(3):
                session.run(train)
            ours = session.run(seen)
        exported = graph.as_graph_def().SerializeToString()
    described = tensorflow.GraphDef.FromString(exported)
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        tensorflow.import_graph_def(described, name="")
        session.run(init.name)
        for _ in range(3):
            session.run("train")
        theirs = session.run(["dense_now:0", "table_now:0"])
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
