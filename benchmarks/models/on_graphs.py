"""The models with TensorFlow's names: one program for runnel and for TensorFlow's `compat.v1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.frontends import load_frontend
from benchmarks.models.architectures import (
    ARCHITECTURES,
    Architecture,
    Conv,
    Dense,
    MaxPool,
    Recurrence,
    apply,
    initial_parameters,
    synthetic_batch,
)
from benchmarks.workload import Workload

RATE = 1e-4
CHECKED_STEPS = 2


class GraphBackend:
    """Layers made of `tf.nn`."""

    def __init__(self, tf: Any, variables: Mapping[str, Any]) -> None:
        self._tf = tf
        self._variables = variables

    def conv(self, value: Any, layer: Conv) -> Any:
        """`tf.nn.conv2d` with a bias or batch normalisation."""
        tf = self._tf
        amount = (layer.padding, layer.padding)
        value = tf.nn.conv2d(
            value,
            self._variables[f"{layer.name}/filter"],
            strides=layer.stride,
            padding=[(0, 0), amount, amount, (0, 0)] if layer.padding else "VALID",
        )
        if layer.normalized:
            scale, offset = (self._variables[f"{layer.name}/{s}"] for s in ("scale", "offset"))
            value, _, _ = tf.nn.fused_batch_norm(value, scale, offset, epsilon=1e-3)
        else:
            value = tf.nn.bias_add(value, self._variables[f"{layer.name}/bias"])
        return tf.nn.relu(value) if layer.relu else value

    def max_pool(self, value: Any, layer: MaxPool) -> Any:
        """`tf.nn.max_pool`."""
        padding = "SAME" if layer.same else "VALID"
        return self._tf.nn.max_pool(value, layer.size, layer.stride, padding)

    def global_average(self, value: Any) -> Any:
        """`tf.reduce_mean` over the positions."""
        return self._tf.reduce_mean(value, [1, 2])

    def dense(self, value: Any, layer: Dense) -> Any:
        """`tf.matmul` and a bias, over flattened images."""
        tf = self._tf
        weights = self._variables[f"{layer.name}/weights"]
        value = tf.reshape(value, [-1, weights.shape.as_list()[0]])
        value = tf.nn.bias_add(tf.matmul(value, weights), self._variables[f"{layer.name}/bias"])
        return tf.nn.relu(value) if layer.relu else value

    def concatenate(self, values: Sequence[Any]) -> Any:
        """`tf.concat` of the channels."""
        return self._tf.concat(values, 3)

    def add_and_rectify(self, value: Any, shortcut: Any) -> Any:
        """`tf.nn.relu` of the sum."""
        return self._tf.nn.relu(value + shortcut)


def loss_of(tf: Any, architecture: Architecture, variables: Any, images: Any, labels: Any) -> Any:
    """The mean cross-entropy of a batch."""
    logits = apply(GraphBackend(tf, variables), architecture.layers, images)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(entropy)


class Loader:
    """Variables whose first values come from NumPy, all of them in one step."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._feeds: dict[Any, Any] = {}
        self._assignments: list[Any] = []
        self.variables: list[Any] = []
        """Those that were made."""

    def variable(self, value: Any, name: str, trainable: bool = True) -> Any:
        """A variable that `load` will fill with `value`."""
        tf = self._tf
        dtype = tf.as_dtype(value.dtype)
        # A constant as an initial value would put a copy of it into the graph.
        source = tf.placeholder(dtype, value.shape)
        variable = tf.Variable(source, trainable=trainable, name=name)
        self._feeds[source] = value
        self._assignments.append(variable.initializer)
        self.variables.append(variable)
        return variable

    def load(self, session: Any) -> None:
        """Fill the variables."""
        session.run(self._assignments, self._feeds)
        self._feeds.clear()


def optimizer_for(tf: Any, precision: str, momentum: float) -> Any:
    """Gradient descent, in mixed precision where that is asked for."""
    if momentum:
        optimizer = tf.train.MomentumOptimizer(RATE, momentum)
    else:
        optimizer = tf.train.GradientDescentOptimizer(RATE)
    if precision == "bf16":
        optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
            optimizer, dtype=tf.bfloat16
        )
    return optimizer


def training_step(
    frontend: str,
    model: str,
    batch: int,
    precision: str = "float32",
    image_size: int | None = None,
    keep_freed_memory: bool = False,
    momentum: float = 0.0,
    fetches: bool = False,
) -> Workload:
    """Training steps on one synthetic batch that lies where the parameters lie."""
    tf = _load(frontend, keep_freed_memory)
    architecture = ARCHITECTURES[model]
    with tf.Graph().as_default():
        loader = Loader(tf)
        images, labels = (
            loader.variable(array, name, trainable=False)
            for array, name in zip(
                synthetic_batch(architecture, batch, image_size), ("images", "labels"), strict=True
            )
        )
        variables = {
            name: loader.variable(value, name.replace("/", "_"))
            for name, value in initial_parameters(architecture, image_size).items()
        }
        loss = loss_of(tf, architecture, variables, images, labels)
        return measured(tf, loader, loss, precision, momentum, fetches)


def _load(frontend: str, keep_freed_memory: bool) -> Any:
    tf = load_frontend(frontend)
    if keep_freed_memory and frontend == "runnel":
        from runnel import memory

        memory.keep_freed_memory()
    return tf


def lstm_step(
    frontend: str,
    keep_freed_memory: bool = False,
    precision: str = "float32",
    fetches: bool = False,
    **sizes: int,
) -> Workload:
    """Training steps of an LSTM, its time steps a `tf.while_loop`.

    TensorFlow is as fast with the loop as with the time steps unrolled.
    """
    tf = _load(frontend, keep_freed_memory)
    recurrence = Recurrence(**sizes)
    with tf.Graph().as_default():
        loader = Loader(tf)
        inputs, labels = (
            loader.variable(array, name, trainable=False)
            for array, name in zip(recurrence.data(), ("inputs", "labels"), strict=True)
        )
        variables = {n: loader.variable(v, n) for n, v in recurrence.parameters().items()}
        shape = [recurrence.batch, recurrence.units]
        steps = tf.TensorArray(tf.float32, recurrence.steps, element_shape=shape).unstack(inputs)

        def step(t: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
            joined = tf.concat([steps.read(t), h], 1)
            gates = tf.matmul(joined, variables["kernel"]) + variables["bias"]
            i, f, g, o = tf.split(gates, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            return t + 1, tf.sigmoid(o) * tf.tanh(c), c

        zeros = tf.zeros(shape)
        _, h, _ = tf.while_loop(lambda t, h, c: t < recurrence.steps, step, (0, zeros, zeros))
        logits = tf.matmul(h, variables["weights"])
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(entropy)
        return measured(tf, loader, loss, precision, fetches=fetches)


def measured(
    tf: Any,
    loader: Loader,
    loss: Any,
    precision: str,
    momentum: float = 0.0,
    fetches: bool = False,
) -> Workload:
    """The workload that trains to reduce `loss`, which a step may bring back."""
    optimizer = optimizer_for(tf, precision, momentum)
    # The step keeps its loss in a variable: to fetch it would end every step with a transfer.
    kept = tf.Variable(tf.zeros([]), trainable=False, name="kept_loss")
    step = tf.group(optimizer.minimize(loss), kept.assign(loss))
    session = tf.Session()
    loader.load(session)
    session.run([kept.initializer, *[v.initializer for v in optimizer.variables()]])
    train = session.make_callable([step, loss] if fetches else step)
    losses = []
    for _ in range(CHECKED_STEPS):
        train()
        losses.append(float(session.run(kept)))

    def run(iterations: int) -> None:
        for _ in range(iterations):
            train()
        session.run(kept)

    return Workload(run, facts=lambda: {"losses": losses, "onednn": _onednn(tf)})


def _onednn(tf: Any) -> str | None:
    """The version of the oneDNN that computes runnel's convolutions."""
    if tf.__name__ != "runnel":
        return None
    from runnel.native import onednn

    found = onednn.installation()
    return None if found is None or onednn.load() is None else found.version
