"""A random program: its inputs, what it computes of them, what it is fed. The same for one seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.control_flow_programs.expression import Expr
from tests.control_flow_programs.grammar import M, Writer

Shape = tuple[int | None, ...] | None
_SHAPES: tuple[Shape, ...] = (None, (None, None), (None, 3), (2, None), (2, 3))


@dataclass(frozen=True)
class Statement:
    """A value of the program with a name; ``traced`` values have a gradient that others use."""

    name: str
    value: Expr
    traced: bool = False
    touches: bool = False

    def lines(self) -> str:
        """The statement as Python."""
        if self.traced:
            text = f"{self.name}, {self.name}_slope = with_slope(lambda x: {{}}, x)"
        else:
            text = f"{self.name} = ({{}})"
        if not self.touches:
            return "    " + text.format(self.value.written("    ")) + "\n"
        inside = text.format(self.value.written("        "))
        return f"    with tf.control_dependencies([v0]):\n        {inside}\n"


@dataclass(frozen=True)
class Program:
    """What a seed stands for."""

    seed: int
    shapes: tuple[Shape, Shape]
    """The known shapes of ``x`` and ``y``."""
    statements: tuple[Statement, ...]
    features: frozenset[str]
    queues: int
    feeds: tuple[dict[str, Any], ...]
    orders: int
    """How often it is differentiated."""

    @property
    def size(self) -> int:
        return sum(statement.value.size for statement in self.statements) + len(self.feeds)

    def source(self) -> str:
        """The definition of ``program(x, y)``, over the names of :meth:`Vocabulary.names`."""
        body = "".join(statement.lines() for statement in self.statements)
        *before, last = self.statements
        result = " + ".join([last.name, *(s.name for s in before if s.touches)])
        return f"def program(x, y):\n{body}    return {result}\n"

    def uses(self, name: str) -> bool:
        """True when ``name`` occurs in the source."""
        return re.search(rf"\b{name}\b", self.source()) is not None

    def defined(self, names: dict[str, Any]) -> Any:
        """The function ``program`` over ``names``."""
        scope = dict(names)
        exec(compile(self.source(), f"<program {self.seed}>", "exec"), scope)
        return scope["program"]

    def simpler(self) -> Iterator[Program]:
        """Programs that are a little smaller; some of them use names that they do not define."""
        for index in range(len(self.feeds) - 1, -1, -1):
            if len(self.feeds) > 1:
                yield replace(self, feeds=(*self.feeds[:index], *self.feeds[index + 1 :]))
        if self.orders:
            yield replace(self, orders=self.orders - 1)
        for index, statement in enumerate(self.statements):
            before, after = self.statements[:index], self.statements[index + 1 :]
            if after:
                yield replace(self, statements=(*before, *after))
            if before and not after:
                yield replace(self, statements=before)
            if statement.traced:
                yield replace(self, statements=(*before, replace(statement, traced=False), *after))
            for value in statement.value.simpler():
                yield replace(self, statements=(*before, replace(statement, value=value), *after))


def random_program(seed: int) -> Program:
    """The program of ``seed``."""
    rng = random.Random(seed)
    features = {
        name
        for name, chance in (
            ("host", 0.7),
            ("devices", 0.25),
            ("variable", 0.3),
            ("queues", 0.25),
            ("reference", 0.5),
        )
        if rng.random() < chance
    }
    fixed = rng.random() < 0.35
    shapes = [rng.choice(_SHAPES if fixed else _SHAPES[:3]) for _ in range(2)]
    writer = Writer(rng, frozenset(features), fixed)
    statements: list[Statement] = []
    count = rng.choice((1, 1, 2, 3))
    touching = rng.randrange(count) if features & {"variable", "queues"} else -1
    if features & {"variable", "queues"}:
        writer.name(M, "(x * v0)", 1)
    for index in range(count):
        traced = index < count - 1 and index != touching and rng.random() < 0.5
        touches = "v0" if index == touching else None
        fuel = rng.randint(3, 10) if count == 1 else rng.randint(2, 6)
        value = writer.write(M, fuel, touches=touches)
        name = f"t{index + 1}"
        statements.append(Statement(name, value, traced, touches is not None))
        writer.name(M, name)
        if traced:
            writer.name(M, f"{name}_slope()")
    numbers = np.random.default_rng(seed)
    feeds = []
    for index in range(2):
        rows = 3 if index and not fixed and rng.random() < 0.5 else 2
        decided = (bool(rng.randrange(2)), bool(rng.randrange(2)), rng.randint(0, 3))
        feeds.append(_feed(numbers, rows, *decided))
    orders = rng.choice((1, 2, 2))
    given = (shapes[0], shapes[1])
    return Program(
        seed, given, tuple(statements), frozenset(features), writer.queues, tuple(feeds), orders
    )


def _feed(numbers: np.random.Generator, rows: int, p: bool, q: bool, n: int) -> dict[str, Any]:
    x, y = (numbers.uniform(-1, 1, (rows, 3)).round(2) for _ in range(2))
    return {"x": x, "y": y, "p": p, "q": q, "n": n}


def statement(name: str, text: str, traced: bool = False) -> Statement:
    """A statement that was written by hand."""
    return Statement(name, Expr(text, M), traced)


def given_program(
    statements: Sequence[Statement], shape: Shape, decided: Iterable[tuple[bool, bool, int]]
) -> Program:
    """A program that was written by hand: its second derivatives, for p, q and n as decided."""
    numbers = np.random.default_rng(0)
    feeds = tuple(_feed(numbers, 2, *values) for values in decided)
    return Program(-1, (shape, shape), tuple(statements), frozenset(), 0, feeds, 2)
