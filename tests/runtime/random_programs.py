"""Random programs: data that a library can build and that NumPy can compute.

The computation is the oracle of the tests: it knows nothing of graphs, passes or tiers, and runs
the needed steps one after another in the order of construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

State = list[np.ndarray]


@dataclass(frozen=True)
class Step:
    """One operation: its inputs and those it must run after are numbers of earlier steps."""

    op: str
    inputs: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    control: tuple[int, ...] = ()


@dataclass(frozen=True)
class Op:
    """How a step is computed with NumPy, and how it is built in a library."""

    compute: Callable[..., Any]
    build: Callable[..., Any]
    smooth: bool = True
    awaits: tuple[int, ...] = ()
    """Inputs that must have been computed, beside those whose values it takes."""


OPS: dict[str, Op] = {}


def op(name: str, compute: Callable[..., Any], build: Any = None, **about: Any) -> None:
    """``build`` is a function of the library and tensors, or the name of a library function."""
    if not callable(build):
        library_name = build or name
        function = lambda tf, *xs, **params: getattr(tf, library_name)(*xs, **params)  # noqa: E731
    else:
        function = build
    OPS[name] = Op(compute, function, **about)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _refuse() -> np.ndarray:
    raise ValueError("not for scalars")


# Elementwise, with expressions that passes rewrite.
op("tanh", np.tanh)
op("sin", np.sin)
op("negative", np.negative)
op("square", np.square)
op("abs", np.abs, smooth=False)
op("exp_tanh", lambda x: np.exp(np.tanh(x)), lambda tf, x: tf.exp(tf.tanh(x)))
op("log_one_plus", lambda x: np.log1p(x * x), lambda tf, x: tf.log(1.0 + tf.square(x)))
op("logistic", lambda x: 1 / (1 + np.exp(-x)), lambda tf, x: 1.0 / (1.0 + tf.exp(-x)))
op("exp_minus_one", lambda x: np.expm1(np.sin(x)), lambda tf, x: tf.exp(tf.sin(x)) - 1.0)
op("sqrt_square", np.abs, lambda tf, x: tf.sqrt(tf.square(x)), smooth=False)
op("neutral", lambda x: x, lambda tf, x: tf.negative(-(tf.identity(x) * 1.0 - 0.0)) / 1.0)
op("divide_and_multiply", lambda x: x, lambda tf, x: x / (2.0 + tf.sin(x)) * (2.0 + tf.sin(x)))
op(
    "log_softmax",
    lambda x: np.log(_softmax(x)) if x.ndim else _refuse(),
    lambda tf, x: tf.log(tf.nn.softmax(x)),
)
op(
    "log_sum_exp",
    lambda x: np.log(np.sum(np.exp(x), x.ndim - 1)) if x.ndim else _refuse(),
    lambda tf, x: tf.log(tf.reduce_sum(tf.exp(x), axis=-1)),
)
op("add", np.add)
op("subtract", np.subtract)
op("multiply", np.multiply)
op("maximum", np.maximum, smooth=False)
op("minimum", np.minimum, smooth=False)
op("quotient", lambda x, y: x / (1 + y * y), lambda tf, x, y: x / (1.0 + y * y))
op("over_and_back", lambda x, y: np.broadcast_arrays(x, y)[0] * 1.0,
   lambda tf, x, y: (x / (2.0 + y * y)) * (2.0 + y * y))  # fmt: skip
op("select", np.where, lambda tf, c, x, y: tf.where(c, x, y))
op("greater", lambda x, y: x > y, smooth=False)
op("logical_not", np.logical_not)
op("int_add", lambda x, y: (x + y) % 13, lambda tf, x, y: tf.floormod(x + y, 13))
op("int_times", lambda x, by: x * by % 11, lambda tf, x, by: tf.floormod(x * by, 11))
op("int_halves", lambda x: x // 2 * 2, lambda tf, x: x // 2 * 2)
op("to_int", lambda x: np.trunc(x * 7.3 + 0.123).astype(np.int32),
   lambda tf, x: tf.cast(x * 7.3 + 0.123, tf.int32), smooth=False)  # fmt: skip
op("to_float", lambda x: x.astype(np.float64), lambda tf, x: tf.cast(x, tf.float64))
op("stop_gradient", lambda x: x, smooth=False)

# Reductions and products.
op("reduce_sum", np.sum)
op("reduce_mean", np.mean)
op("reduce_max", np.max, smooth=False)
op("argmax", lambda x, axis: np.argmax(x, axis).astype(np.int32),
   lambda tf, x, axis: tf.argmax(x, axis, output_type=tf.int32), smooth=False)  # fmt: skip
op("cumsum", lambda x, axis: np.cumsum(x, axis), lambda tf, x, axis: tf.cumsum(x, axis))
op(
    "matmul",
    lambda a, b, ta, tb: (a.T if ta else a) @ (b.T if tb else b),
    lambda tf, a, b, ta, tb: tf.matmul(a, b, transpose_a=ta, transpose_b=tb),
)


# Shapes, some of them known only when the step runs.
def _shape(tf: Any, x: Any) -> Any:
    """The shape of ``x``, which is computed even if its shape is known before."""
    with tf.control_dependencies([x]):
        return tf.identity(tf.shape(x))


op("shape", lambda x: np.array(x.shape, np.int32), lambda tf, x: _shape(tf, x), awaits=(0,))
op("size", lambda x: np.array(x.size, np.int32), lambda tf, x: tf.reduce_prod(_shape(tf, x)),
   awaits=(0,))  # fmt: skip
op("reshape_like", lambda x, y: x.reshape(y.shape), lambda tf, x, y: tf.reshape(x, _shape(tf, y)),
   awaits=(1,))  # fmt: skip
op("flatten", np.ravel, lambda tf, x: tf.reshape(tf.reshape(x, [1, -1]), [-1]))
op(
    "keep_first",
    lambda x: x.reshape(x.shape[0], -1),
    lambda tf, x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [-1]], 0)),
)
op("transpose", lambda x, perm: x.transpose(perm))
op("there_and_back", lambda x: x, lambda tf, x: tf.transpose(tf.transpose(x)))
op("expand_dims", np.expand_dims)
op("concat", lambda *xs, axis: np.concatenate(xs, axis), lambda tf, *xs, axis: tf.concat(xs, axis))
op("stack", lambda *xs, axis: np.stack(xs, axis), lambda tf, *xs, axis: tf.stack(xs, axis))
op("slice", lambda x, start, stop: x[start:stop], lambda tf, x, start, stop: x[start:stop])
op("reverse", lambda x: x[::-1], lambda tf, x: x[::-1])
op("fill_like", lambda x, y: np.full(x.shape, y), lambda tf, x, y: tf.fill(_shape(tf, x), y),
   awaits=(0,))  # fmt: skip
op("ones_like", np.ones_like, lambda tf, x: tf.ones(_shape(tf, x), x.dtype), awaits=(0,))
op("tile", lambda x, multiples: np.tile(x, multiples))
op(
    "one_hot",
    lambda i, depth: np.eye(depth)[i % depth],
    lambda tf, i, depth: tf.one_hot(tf.floormod(i, depth), depth, dtype=tf.float64),
)
op("range", lambda n: np.arange(n % 5, dtype=np.int32), lambda tf, n: tf.range(tf.floormod(n, 5)))
op(
    "gather",
    lambda x, i: x[i % x.shape[0]],
    lambda tf, x, i: tf.gather(x, tf.floormod(i, tf.shape(x)[0])),
)
op(
    "index",
    lambda x, i: x[i % x.shape[0]],
    lambda tf, x, i: x[tf.floormod(i, tf.shape(x)[0])],
)
op("boolean_mask", lambda x, mask: x[mask],
   lambda tf, x, mask: tf.boolean_mask(x, tf.reshape(mask, [-1])), smooth=False)  # fmt: skip

# The host, and checks.
op("py_func", lambda x: x * 2 + 1, lambda tf, x: tf.py_func(lambda v: v * 2 + 1, [x], x.dtype),
   smooth=False)  # fmt: skip
op("check_numerics", lambda x: x, lambda tf, x: tf.check_numerics(x, "a value is not finite"))
op("assert_finite", lambda x: x, lambda tf, x: _asserted(tf, x))


def _asserted(tf: Any, x: Any) -> Any:
    with tf.control_dependencies([tf.Assert(tf.reduce_all(tf.equal(x, x)), ["NaN in", x])]):
        return tf.identity(x)


# State: the first parameter is the state and the number of the variable.
def _assigned(state: State, number: int, value: np.ndarray) -> np.ndarray:
    state[number] = value
    return value


def _scattered(state: State, number: int, rows: np.ndarray, updates: np.ndarray) -> np.ndarray:
    value = state[number].copy()
    np.add.at(value, rows % len(value), updates)
    return _assigned(state, number, value)


STATE_OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "read": (lambda s, n: s[n], lambda tf, v: tf.identity(v)),
    "assign": (_assigned, lambda tf, v, x: tf.identity(tf.assign(v, x))),
    "assign_add": (
        lambda s, n, x: _assigned(s, n, s[n] + x),
        lambda tf, v, x: tf.identity(tf.assign_add(v, x)),
    ),
    "assign_sub": (
        lambda s, n, x: _assigned(s, n, s[n] - x),
        lambda tf, v, x: tf.identity(v.assign_sub(x)),
    ),
    "scatter_add": (
        _scattered,
        lambda tf, v, i, x: tf.identity(tf.scatter_add(v, tf.floormod(i, v.shape[0]), x)),
    ),
}


@dataclass
class Program:
    """Steps in the order of construction; ``initial`` are the variables' first values."""

    steps: list[Step] = field(default_factory=list)
    initial: list[np.ndarray] = field(default_factory=list)
    use_resource: list[bool] = field(default_factory=list)
    feeds: dict[int, np.ndarray] = field(default_factory=dict)
    """Values for the placeholders."""

    def needed(self, fetches: Iterable[int], fed: Iterable[int]) -> list[int]:
        """The steps that computing ``fetches`` takes, when ``fed`` are given."""
        fed = set(fed)
        stack = [f for f in fetches if f not in fed]
        needed: set[int] = set()
        while stack:
            number = stack.pop()
            if number in needed:
                continue
            needed.add(number)
            step = self.steps[number]
            stack += [i for i in step.inputs if i not in fed]
            # A fed placeholder has nothing to wait for; another fed step still runs.
            about = OPS.get(step.op)
            awaited = [*step.control, *(step.inputs[i] for i in (about.awaits if about else ()))]
            stack += [c for c in awaited if not (c in fed and self._is_placeholder(c))]
        return sorted(needed)

    def _is_placeholder(self, number: int) -> bool:
        return self.steps[number].op == "placeholder"

    def compute(
        self, fetches: list[int], state: State, fed: Mapping[int, np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """The fetched values, step by step with NumPy; updates ``state``."""
        fed = {**self.feeds, **(fed or {})}
        values: dict[int, np.ndarray] = dict(fed)
        for number in self.needed(fetches, fed):
            result = compute_step(self.steps[number], values, state)
            if number not in fed:
                values[number] = result
        return [values[f] for f in fetches]

    def build(self, tf: Any) -> tuple[list[Any], list[Any]]:
        """The tensors of the steps and the variables, in the default graph of ``tf``."""
        variables = [
            tf.Variable(value, use_resource=resource)
            for value, resource in zip(self.initial, self.use_resource, strict=True)
        ]
        tensors: list[Any] = []
        for step in self.steps:
            with tf.control_dependencies([tensors[c] for c in step.control]):
                tensors.append(self._build_step(tf, step, tensors, variables))
        return tensors, variables

    def _build_step(self, tf: Any, step: Step, tensors: list[Any], variables: list[Any]) -> Any:
        inputs = [tensors[i] for i in step.inputs]
        if step.op == "placeholder":
            return tf.placeholder(step.params["dtype"], step.params["shape"])
        if step.op == "constant":
            return tf.constant(step.params["value"])
        if step.op in STATE_OPS:
            return STATE_OPS[step.op][1](tf, variables[step.params["variable"]], *inputs)
        return OPS[step.op].build(tf, *inputs, **step.params)


def compute_step(step: Step, values: Mapping[int, np.ndarray], state: State) -> np.ndarray:
    """The value of one step, given those of its inputs."""
    inputs = [values[i] for i in step.inputs]
    if step.op == "constant":
        return step.params["value"]
    if step.op in STATE_OPS:
        result = STATE_OPS[step.op][0](state, step.params["variable"], *inputs)
    else:
        result = OPS[step.op].compute(*inputs, **step.params)
    return np.asarray(result)
