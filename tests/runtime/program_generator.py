"""Generates random programs: each step is chosen to fit the values before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.runtime.random_programs import OPS, STATE_OPS, Program, State, Step, compute_step

_MAX_SIZE = 60
_MAX_ABS = 1e3

Holds = Callable[[np.ndarray], bool]


def is_float(x: np.ndarray) -> bool:
    return x.dtype == np.float64


def is_int(x: np.ndarray) -> bool:
    return x.dtype == np.int32


def is_bool(x: np.ndarray) -> bool:
    return x.dtype == np.bool_


def _vector(holds: Holds) -> Holds:
    return lambda x: holds(x) and x.ndim == 1


class _Generator:
    """Appends random steps; ``values`` are theirs, computed as they are added."""

    def __init__(
        self, rng: random.Random, families: tuple[str, ...], ordered: bool, smooth: bool
    ) -> None:
        self.rng = rng
        self.program = Program()
        self.values: list[np.ndarray] = []
        self.state: State = []
        self.families = families
        self.ordered = ordered
        self.smooth = smooth
        self.last_touch: dict[int, int] = {}
        self.attempts = 0

    # Drawing --------------------------------------------------------------------------------

    def number(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def flip(self) -> bool:
        return self.rng.random() < 0.5

    def one_of(self, items: Any) -> Any:
        return self.rng.choice(list(items))

    def pick(self, holds: Holds) -> int | None:
        """The number of a value for which ``holds``; newer ones are likelier."""
        fitting = [i for i, v in enumerate(self.values) if holds(v)]
        if not fitting:
            return None
        return fitting[-1 - min(self.number(0, len(fitting) - 1), self.number(0, len(fitting) - 1))]

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        rng = np.random.default_rng(self.number(0, 2**16))
        if dtype == np.float64:
            return rng.uniform(-2, 2, shape)
        if dtype == np.int32:
            return rng.integers(-5, 9, shape).astype(np.int32)
        return rng.random(shape) < 0.5

    def shape(self) -> tuple[int, ...]:
        return tuple(self.number(1, 4) for _ in range(self.number(0, 3)))

    # Adding ---------------------------------------------------------------------------------

    def add(self, op: str, *inputs: int | None, **params: Any) -> None:
        """Appends a step, unless an input is missing or the value is useless."""
        if any(i is None for i in inputs):
            return
        if self.smooth and op in OPS and not OPS[op].smooth:
            return
        control = self._control(op, params)
        step = Step(op, tuple(i for i in inputs if i is not None), params, control)
        values = dict(enumerate(self.values))
        state = list(self.state)
        try:
            with np.errstate(all="raise"):
                value = compute_step(step, values, state)
        except (ValueError, IndexError, FloatingPointError):
            return  # shapes that do not go together, or an empty mean
        if value.size > _MAX_SIZE or not np.all(np.abs(value * 1.0) < _MAX_ABS):
            return
        self.state[:] = state
        self._append(step, value)

    def _control(self, op: str, params: dict[str, Any]) -> tuple[int, ...]:
        control = []
        if op in STATE_OPS:
            variable = params["variable"]
            if self.ordered and variable in self.last_touch:
                control.append(self.last_touch[variable])
            self.last_touch[variable] = len(self.values)
        if self.values and "control" in self.families and self.number(0, 4) == 0:
            control.append(self.number(0, len(self.values) - 1))
        return tuple(dict.fromkeys(control))

    def _append(self, step: Step, value: np.ndarray) -> None:
        if step.op in STATE_OPS:
            self.last_touch[step.params["variable"]] = len(self.values)
        self.program.steps.append(step)
        self.values.append(value)

    def add_placeholder(self) -> None:
        value = self.array(self.shape(), self.one_of([np.float64, np.float64, np.int32, np.bool_]))
        unknown_rank = self.number(0, 5) == 0
        static = None if unknown_rank else [None if self.flip() else d for d in value.shape]
        if unknown_rank and self.smooth:
            static = list(value.shape)
        self.program.feeds[len(self.values)] = value
        params = {"dtype": value.dtype.name, "shape": static}
        self._append(Step("placeholder", (), params), value)

    def add_constant(self) -> None:
        value = self.array(self.shape(), self.one_of([np.float64, np.int32, np.bool_]))
        self._append(Step("constant", (), {"value": value}), value)

    def add_variable(self, resource_only: bool) -> None:
        value = self.array((self.number(1, 4), *self.shape()[:1]), np.float64)
        self.program.initial.append(value)
        self.program.use_resource.append(resource_only or self.flip())
        self.state.append(value)

    # Families -------------------------------------------------------------------------------

    def elementwise(self) -> None:
        unary = "tanh sin negative square abs exp_tanh log_one_plus logistic exp_minus_one neutral"
        unary += " sqrt_square divide_and_multiply log_softmax log_sum_exp ones_like stop_gradient"
        binary = "add subtract multiply maximum minimum quotient over_and_back"
        kind = self.number(0, 5)
        if kind <= 1:
            self.add(self.one_of(unary.split()), self.pick(is_float))
        elif kind <= 3:
            self.add(self.one_of(binary.split()), self.pick(is_float), self.pick(is_float))
        elif kind == 4:
            x = self.pick(is_float)
            if x is not None:
                shape = self.values[x].shape
                same = self.pick(lambda v: is_float(v) and v.shape == shape)
                chosen = self.pick(lambda v: is_bool(v) and v.shape == shape)
                self.add("select", chosen, x, same)
        else:
            self.add("greater", self.pick(is_float), self.pick(is_float))
            self.add("logical_not", self.pick(is_bool))

    def integers(self) -> None:
        kind = self.number(0, 5)
        if kind == 0:
            self.add("int_add", self.pick(is_int), self.pick(is_int))
        elif kind == 1:
            self.add("int_times", self.pick(is_int), by=self.number(1, 5))
        elif kind == 2:
            self.add("int_halves", self.pick(is_int))
        elif kind == 3:
            self.add("to_int", self.pick(is_float))
        elif kind == 4:
            self.add("to_float", self.pick(lambda x: not is_float(x)))
        else:
            self.add(self.one_of(["shape", "size"]), self.pick(lambda x: True))

    def reductions(self) -> None:
        x = self.pick(lambda v: is_float(v) and v.ndim > 0)
        if x is None:
            return
        axis = self.number(-self.values[x].ndim, self.values[x].ndim - 1)
        kind = self.number(0, 3)
        if kind == 0:
            name = self.one_of(["reduce_sum", "reduce_mean", "reduce_max"])
            self.add(name, x, axis=None if self.flip() else axis, keepdims=self.flip())
        elif kind == 1:
            self.add("argmax", x, axis=axis)
        elif kind == 2:
            self.add("cumsum", x, axis=axis)
        else:
            a, b = (self.pick(lambda v: is_float(v) and v.ndim == 2) for _ in range(2))
            self.add("matmul", a, b, ta=self.flip(), tb=self.flip())

    def shapes(self) -> None:
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return
        value = self.values[x]
        rank = value.ndim
        kind = self.number(0, 9)
        if kind == 0:
            other = self.pick(lambda v: v.size == value.size)
            self.add("reshape_like", x, other)
        elif kind == 1:
            self.add(self.one_of(["flatten", "keep_first", "there_and_back", "reverse"]), x)
        elif kind == 2:
            self.add("transpose", x, perm=self.rng.sample(range(rank), rank))
        elif kind == 3:
            self.add("expand_dims", x, axis=self.number(-rank - 1, rank))
        elif kind == 4:
            op = self.one_of(["concat", "stack"])
            other = self.pick(lambda v: v.dtype == value.dtype and v.ndim == rank)
            self.add(op, x, other, x, axis=self.number(0, rank - 1))
        elif kind == 5:
            start = self.number(0, 2)
            self.add("slice", x, start=start, stop=start + self.number(0, 3))
        elif kind == 6:
            self.add("fill_like", x, self.pick(lambda v: is_float(v) and v.ndim == 0))
        elif kind == 7:
            self.add("tile", x, multiples=[self.number(1, 2) for _ in range(rank)])
        elif kind == 8:
            self.add("one_hot", self.pick(is_int), depth=self.number(1, 4))
        else:
            self.add("range", self.pick(lambda v: is_int(v) and v.ndim == 0))

    def gathers(self) -> None:
        x = self.pick(lambda v: v.ndim > 0 and v.shape[0] > 0)
        if x is None:
            return
        length = self.values[x].shape[0]
        kind = self.number(0, 2)
        if kind == 0:
            self.add("gather", x, self.pick(is_int))
        elif kind == 1:
            self.add("index", x, self.pick(lambda v: is_int(v) and v.ndim == 0))
        else:
            self.add("boolean_mask", x, self.pick(lambda v: is_bool(v) and v.shape == (length,)))

    def host(self) -> None:
        self.add("py_func", self.pick(lambda x: is_float(x) or is_int(x)))

    def checks(self) -> None:
        self.add(self.one_of(["check_numerics", "assert_finite"]), self.pick(is_float))

    def reads(self) -> None:
        if self.state:
            self.add("read", variable=self.number(0, len(self.state) - 1))

    def updates(self) -> None:
        if not self.state:
            return
        variable = self.number(0, len(self.state) - 1)
        shape = self.state[variable].shape
        kind = self.number(0, 3)
        if kind == 0:
            rows = self.pick(_vector(is_int))
            if rows is None:
                return
            wanted = (self.values[rows].shape[0], *shape[1:])
            updates = self.pick(lambda v: is_float(v) and v.shape == wanted)
            self.add("scatter_add", rows, updates, variable=variable)
            return
        op = ["assign", "assign_add", "assign_sub"][kind - 1]
        value = self.pick(lambda v: is_float(v) and v.shape == shape)
        if value is None:
            self.add("read", variable=variable)
            value = self.pick(lambda v: is_float(v) and v.shape == shape)
        self.add(op, value, variable=variable)


ALL = ("elementwise", "integers", "reductions", "shapes", "gathers", "host", "checks")
STATE = ("reads", "updates", "control")


def random_program(
    seed: int,
    families: tuple[str, ...] = (*ALL, *STATE),
    ordered: bool = False,
    smooth: bool = False,
    max_steps: int = 30,
) -> Program:
    """A program over the named families of steps.

    ``ordered`` chains the uses of a variable with control edges and makes it a resource: then
    TensorFlow defines what happens, too. ``smooth`` leaves out what finite differences cannot see.
    """
    generator = _Generator(random.Random(seed), families, ordered, smooth)
    for _ in range(generator.number(1, 4)):
        generator.add_placeholder()
    for _ in range(generator.number(1, 2)):
        generator.add_constant()
    if "reads" in families:
        for _ in range(generator.number(1, 2)):
            generator.add_variable(resource_only=ordered)
    choices = [f for f in families if f != "control"]
    while len(generator.values) < max_steps and generator.attempts < 3 * max_steps:
        generator.attempts += 1
        getattr(generator, generator.one_of(choices))()
    return generator.program
