"""``tf.layers.Layer``: names, variables, sharing, losses, what it expects of inputs."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


class Scale(tf.layers.Layer):
    """Multiplies by a weight for each column."""

    def build(self, input_shape):
        self.factor = self.add_weight(
            "factor", [input_shape[-1]], initializer=tf.constant_initializer(3.0)
        )
        super().build(input_shape)

    def call(self, inputs):
        return inputs * self.factor


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def names(variables=None):
    return [v.op.name for v in (tf.global_variables() if variables is None else variables)]


def test_build_and_call():
    layer = Scale()
    assert not layer.built and layer.variables == []
    y = layer(X)
    assert layer.built
    assert y.op.name == "scale/mul"
    np.testing.assert_array_equal(run_both(y, init=tf.global_variables_initializer()), X * 3)


def test_names_of_layers_and_scopes():
    one, two, named = Scale(), Scale(), Scale(name="mine")
    with tf.variable_scope("outer"):
        two(X)
        one(X)
    named(X)
    # The variables are named in the order of use, the layers in the order of construction.
    assert names() == ["outer/scale/factor", "outer/scale_1/factor", "mine/factor"]
    assert [layer.name for layer in (one, two, named)] == ["scale_1", "scale_2", "mine"]
    assert two.scope_name == "outer/scale"
    with pytest.raises(ValueError, match="has not been used yet"):
        Scale().scope_name  # noqa: B018


def test_a_layer_that_is_called_again_shares_its_variables():
    layer = Scale()
    first = layer(X)
    with tf.variable_scope("elsewhere"):
        second = layer(X)
    assert names() == ["scale/factor"]
    assert (first.op.name, second.op.name) == ("scale/mul", "scale/mul_1")


def test_reuse_by_name():
    Scale(name="s")(X)
    Scale(name="s")(X)
    Scale(name="s", _reuse=True)(X)
    Scale(_scope="s", _reuse=True)(X)
    assert names() == ["s/factor", "s_1/factor"]


def test_a_scope_given_in_the_call():
    Scale()(X, scope="here")
    assert names() == ["here/factor"]


def test_the_type_of_the_variables():
    assert Scale()(X.astype(np.float64)).dtype == tf.float64
    layer = Scale(dtype=tf.float64)
    assert layer.dtype == tf.float64
    assert Scale().dtype is None


class TestWeights:
    def test_trainable_or_not(self):
        class Both(tf.layers.Layer):
            def build(self, input_shape):
                self.add_weight("a", [2])
                self.add_variable("b", [3], trainable=False)

            def call(self, inputs):
                return inputs

        layer = Both()
        layer(X)
        assert layer.built  # although its build does not call the base's
        assert names(layer.trainable_weights) == ["both/a"]
        assert names(layer.non_trainable_variables) == ["both/b"]
        assert names(tf.trainable_variables()) == ["both/a"]
        assert layer.count_params() == 5
        layer.trainable = False
        assert layer.trainable_variables == []
        assert names(layer.weights) == ["both/a", "both/b"]
        frozen = Both(trainable=False)
        frozen(X)
        assert names(tf.trainable_variables()) == ["both/a"]

    def test_of_layers_inside(self):
        class Outer(tf.layers.Layer):
            def __init__(self):
                super().__init__()
                self.first = Scale()
                self.others = [Scale(), {"deep": Scale()}]

            def call(self, inputs):
                return self.first(self.others[0](self.others[1]["deep"](inputs)))

        layer = Outer()
        layer(X)
        assert sorted(names(layer.variables)) == sorted(names())
        assert names()[0] == "outer/scale/factor"

    def test_a_getter_may_make_them_untrainable(self):
        def getter(getter, *args, **kwargs):
            return getter(*args, **{**kwargs, "trainable": False})

        layer = Scale()
        with tf.variable_scope("frozen", custom_getter=getter):
            layer(X)
        assert layer.trainable_weights == []
        assert names(layer.non_trainable_weights) == ["frozen/scale/factor"]

    def test_in_parts(self):
        layer = Scale()
        with tf.variable_scope("cut", partitioner=tf.fixed_size_partitioner(3)):
            y = layer(X)
        assert names() == [f"cut/scale/factor/part_{i}" for i in range(3)]
        assert len(layer.trainable_weights) == 3
        np.testing.assert_array_equal(run_both(y, init=tf.global_variables_initializer()), X * 3)

    def test_defaults_of_the_scope(self):
        with tf.variable_scope("s", initializer=tf.ones_initializer(), use_resource=True):
            layer = tf.layers.Dense(2)
            layer(X)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert (sess.run(layer.kernel) == 1).all()
        assert layer.kernel.op.type == "VarHandleOp"


class TestLosses:
    def test_of_regularizers(self):
        layer = tf.layers.Dense(
            2,
            kernel_regularizer=lambda w: tf.reduce_sum(w) * 10.0,
            bias_regularizer=lambda b: None,
            kernel_initializer=tf.ones_initializer(),
        )
        layer(X)
        layer(X)
        assert layer.losses == tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        (loss,) = layer.losses
        assert loss.op.name.startswith("dense/kernel/Regularizer/")
        assert run_both(loss, init=tf.global_variables_initializer()) == 60

    def test_of_activity(self):
        x = tf.placeholder(tf.float32, [None, 3])
        layer = tf.layers.Dense(2, activity_regularizer=tf.reduce_sum, name="d")
        y = layer(x)
        (loss,) = layer.losses
        assert layer.get_losses_for(x) == [loss] and layer.get_losses_for(None) == []
        found, output = run_both([loss, y], {x: X}, init=tf.group(*map(self.ones, layer.weights)))
        np.testing.assert_allclose(found, output.sum() / 2)

    @staticmethod
    def ones(variable):
        return tf.assign(variable, tf.ones_like(variable))

    def test_updates(self):
        class Counting(tf.layers.Layer):
            def build(self, input_shape):
                self.count = self.add_weight(
                    "count", [], initializer=tf.zeros_initializer(), trainable=False
                )
                super().build(input_shape)

            def call(self, inputs):
                self.add_update(tf.assign_add(self.count, 1.0))
                return inputs

        layer = Counting()
        layer(X)
        assert layer.updates == tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        assert len(layer.updates) == 1


class TestInputs:
    def test_a_call_that_takes_the_scope(self):
        class Named(tf.layers.Layer):
            def call(self, inputs, scope=None):
                return tf.identity(inputs, name=scope.name)

        assert Named()(X).op.name == "named/named"

    def test_structures(self):
        class Sum(tf.layers.Layer):
            def build(self, input_shape):
                assert [s.as_list() for s in input_shape] == [[2, 3], [3]]
                super().build(input_shape)

            def call(self, inputs, extra=0.0):
                return inputs[0] + inputs[1] + extra

        found = run_both(Sum()([X, tf.ones([3])], extra=2.0))
        np.testing.assert_array_equal(found, X + 3)

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"ndim": 3}, "expected ndim=3, found ndim=2"),
            ({"min_ndim": 3}, "expected min_ndim=3, found ndim=2"),
            ({"max_ndim": 1}, "expected max_ndim=1, found ndim=2"),
            ({"axes": {-1: 5}}, "axis -1 of the shape to be 5, found 3"),
            ({"shape": [None, 4]}, r"expected shape=\(\?, 4\)"),
            ({"dtype": "int32"}, "expected dtype=int32, found dtype=float32"),
        ],
    )
    def test_what_a_layer_expects(self, spec, message):
        layer = Scale()
        layer.input_spec = tf.layers.InputSpec(**spec)
        with pytest.raises(ValueError, match=f"layer scale_1 is incompatible.*{message}"):
            layer(X)

    def test_the_number_of_inputs(self):
        layer = Scale()
        layer.input_spec = [tf.layers.InputSpec(ndim=2)] * 2
        with pytest.raises(ValueError, match="expects 2 inputs, but it received 1"):
            layer(X)

    def test_a_call_that_returns_nothing(self):
        class Forgetful(tf.layers.Layer):
            def call(self, inputs):
                pass

        with pytest.raises(ValueError, match="returned None"):
            Forgetful()(X)
