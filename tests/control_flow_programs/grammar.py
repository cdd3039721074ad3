"""What programs are made of: for each kind of value, the ways to write one.

The kinds: a matrix (``matrix``: as many rows as the inputs, three columns), ``ragged`` rows (three
columns, a number of rows that data decides), a ``scalar``, a ``predicate``, a ``count`` (of
iterations) and a ``mask`` (one for each row). ``$a`` and ``$b`` in a template are names that it
binds for the parts that are inside a loop.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.control_flow_programs.expression import Expr


@dataclass(frozen=True)
class Inside:
    """A part of a loop's body: of ``kind``, with the names that the loop binds, of their kinds."""

    kind: str
    binds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Production:
    """One way to write a value; ``needs`` is the feature of which it is a part."""

    template: str
    parts: tuple[str | Inside, ...]
    weight: int = 1
    control: bool = False
    needs: str = ""


GRAMMAR: dict[str, list[Production]] = {}


def way(kind: str, template: str, *parts: str | Inside, **about: int | bool | str) -> None:
    found = Production(template, parts, **about)  # type: ignore[arg-type]
    GRAMMAR.setdefault(kind, []).append(found)


M, R, S, P, N, K = "matrix", "ragged", "scalar", "predicate", "count", "mask"

# A matrix of one.
for _template in ("tf.sin({})", "tf.tanh({})", "tf.negative({})", "tf.sigmoid({})"):
    way(M, _template, M, weight=2)
way(M, "tf.exp(tf.tanh({}))", M)
way(M, "tf.sqrt(1.0 + tf.square({}))", M)
way(M, "tf.reverse({}, [0])", M)
way(M, "tf.gather({}, [2, 0, 1], axis=1)", M)
way(M, "tf.matmul({}, WEIGHTS)", M)
way(M, "tf.nn.softmax({})", M)
way(M, "tf.cumsum({}, 0)", M)
way(M, "tf.cumprod({}, 1)", M)
way(M, "tf.transpose(tf.transpose({}))", M)
way(M, "tf.squeeze(tf.expand_dims({}, 1), [1])", M)
way(M, "tf.stop_gradient({})", M)
for _word in ("rotated", "shifted", "cut", "reshaped", "products", "sorted_rows", "spread"):
    way(M, f"{_word}({{}})", M)
for _word in ("counted", "by_group", "on_host", "kept"):
    way(M, f"{_word}({{}})", M, needs="host", weight=2)
way(M, "regrouped({}, {})", M, K, needs="host")
way(M, "stitched({}, {})", M, K, needs="host")
# A matrix of several values.
for _template in ("tf.add({}, {})", "tf.multiply({}, {})", "tf.subtract({}, {})"):
    way(M, _template, M, M, weight=3)
way(M, "tf.maximum({}, {})", M, M)
way(M, "tf.where({} > 0.1, {}, {})", M, M, M)
way(M, "({} * {})", M, S, weight=4)
way(M, "tf.fill(tf.shape({}), {})", M, S)
way(M, "({} + tf.reduce_sum({}, 0))", M, R, needs="host", weight=4)
way(M, "(0.1 * tf.matmul({}, squares({})))", M, R, needs="host")
way(M, "(tf.cast(tf.shape({})[0], tf.float64) * {})", R, M, needs="host")
# Conditionals.
way(M, "tf.cond({}, lambda: {}, lambda: {})", P, M, M, control=True, weight=16)
way(
    M,
    "times(tf.cond({}, lambda: [{}, {}], lambda: [{}, {}]))",
    *(P, M, M, M, M),
    control=True,
    weight=3,
)
way(
    M,
    "tf.case([({}, lambda: {}), ({}, lambda: {})], default=lambda: {})",
    *(P, M, P, M, M),
    control=True,
    weight=2,
)
# Loops.
way(
    M,
    "tf.while_loop(lambda $i, $a: $i < {}, "
    "lambda $i, $a: [$i + 1, like(tf.tanh(step({}, $i)), $a)], [0, {}])[1]",
    *(Inside(N), Inside(M, {"$a": M}), M),
    control=True,
    weight=8,
)
way(
    M,
    "tf.while_loop(lambda $i, $a: tf.logical_and($i < 4, tf.reduce_sum($a) < {}), "
    "lambda $i, $a: [$i + 1, like(tf.tanh({}) + 0.4, $a)], [0, {}])[1]",
    *(Inside(S), Inside(M, {"$a": M}), M),
    control=True,
    weight=3,
)
way(
    M,
    "tf.while_loop(lambda $i, $a: $i < {}, lambda $i, $a: [$i + 1, tf.tanh({})], [0, {}], "
    "shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])[1]",
    *(Inside(N), Inside(M, {"$a": M}), M),
    control=True,
    weight=2,
)
way(
    M,
    "times(tf.while_loop(lambda $i, $a, $b: $i < {}, "
    "lambda $i, $a, $b: [$i + 1, like(tf.sin({}), $a), like(tf.tanh({}), $b)], [0, {}, {}])[1:])",
    *(Inside(N), Inside(M, {"$a": M, "$b": M}), Inside(M, {"$a": M, "$b": M}), M, M),
    control=True,
    weight=3,
)
way(
    M,
    "written({}, lambda $b, $a: tf.tanh({}), {})",
    *(N, Inside(M, {"$a": M, "$b": S}), M),
    control=True,
    weight=3,
)
way(
    M,
    "tf.map_fn(lambda $b: tf.reduce_sum($b) * tf.reshape({}, [-1])[:3], {})",
    *(Inside(M), M),
    control=True,
    weight=2,
)
for _kind in ("foldl", "foldr"):
    way(
        M,
        f"tf.{_kind}(lambda $a, $b: like(tf.tanh({{}}) + $b, $a), {{}}, initializer={{}})",
        *(Inside(M, {"$a": M}), M, M),
        control=True,
    )
way(
    M,
    "tf.reduce_sum(tf.scan(lambda $a, $b: like(tf.tanh({}) * $b, $a), {}, initializer={}), 0)",
    *(Inside(M, {"$a": M}), M, M),
    control=True,
)
way(M, "on('/cpu:1', lambda: {})", M, needs="devices", weight=10)
way(M, "on('/cpu:0', lambda: {})", M, needs="devices", weight=3)

# Rows whose number data decides.
way(R, "tf.boolean_mask({}, {})", M, K, weight=5)
way(R, "chosen({}, {})", M, K, weight=2)
way(R, "tf.dynamic_partition({}, tf.cast({}, tf.int32), 2)[1]", M, K, weight=2)
way(R, "pairs({})", M, weight=2)
way(R, "{}[:{}]", M, N)
way(R, "tf.sin({})", R)
way(R, "tf.concat([{}, {}], 0)", R, R)
way(R, "tf.concat([{}, {}], 0)", M, R)
way(R, "tf.cond({}, lambda: {}, lambda: {})", P, R, R, control=True, weight=3)
way(R, "tf.cond({}, lambda: {}, lambda: {})", P, M, R, control=True, weight=3)
way(
    R,
    "tf.while_loop(lambda $i, $a: $i < {}, "
    "lambda $i, $a: [$i + 1, tf.reshape(tf.concat([tf.tanh({}), {}], 0), [-1, 3])], "
    "[0, tf.reshape({}, [-1, 3])], "
    "shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])])[1]",
    *(Inside(N), Inside(R, {"$a": R}), Inside(M), R),
    control=True,
    weight=3,
)

# Scalars.
way(S, "tf.reduce_sum({})", M, weight=4)
way(S, "tf.reduce_sum({})", R, needs="host", weight=2)
way(S, "tf.reduce_max({})", M)
way(S, "tf.reduce_mean(tf.square({}))", M)
way(S, "tf.reduce_prod(tf.sigmoid({}))", M)
way(S, "tf.reshape({}, [-1])[1]", M)
way(S, "tf.tanh({})", S)
way(S, "({} * {})", S, S)
way(S, "tf.cond({}, lambda: {}, lambda: {})", P, S, S, control=True, weight=5)
way(
    S,
    "tf.while_loop(lambda $i, $b: $i < {}, lambda $i, $b: [$i + 1, tf.tanh({})], [0, {}])[1]",
    *(Inside(N), Inside(S, {"$b": S}), S),
    control=True,
    weight=2,
)

# What decides.
way(P, "{} > 0.1", S, weight=4)
way(P, "tf.logical_not({})", P)
way(P, "tf.logical_and({}, {})", P, P)
way(P, "tf.reduce_any({})", K)
way(N, "tf.minimum(n, 2)")
way(N, "tf.shape({})[0]", M)
way(N, "tf.size(tf.where({}))", K, needs="host")
way(K, "tf.reshape(tf.reduce_sum({}, 1) > 0.1, [-1])", M, weight=3)
way(K, "tf.reshape(tf.reduce_max({}, 1) > 0.3, [-1])", M)

LEAVES = {
    M: ["x", "y"],
    R: ["x"],
    S: ["tf.reduce_sum(x)", "c"],
    P: ["p", "q"],
    N: ["n", "2", "3"],
    K: ["tf.reshape(x[:, 0] > 0.1, [-1])"],
}

_MAX_DEPTH = 3


class Writer:
    """Writes random expressions: those of ``features``, nested at most three deep."""

    def __init__(self, rng: random.Random, features: frozenset[str], two_rows: bool) -> None:
        self._rng = rng
        self._features = features
        self._leaves = {kind: list(leaves) for kind, leaves in LEAVES.items()}
        if two_rows:
            self._leaves[K] += ["[True, False]", "[True, True]"]
        self._count = 0
        self.queues = 0

    def name(self, kind: str, text: str, weight: int = 3) -> None:
        """``text`` may be used from now on as a value of ``kind``."""
        self._leaves[kind] += [text] * weight

    def write(
        self,
        kind: str,
        fuel: int,
        depth: int = 0,
        scope: Mapping[str, Sequence[str]] | None = None,
        touches: str | None = None,
        in_loop: bool = False,
    ) -> Expr:
        """An expression of ``kind`` of about ``fuel`` pieces.

        ``scope`` has the names that loops around it bind; with ``touches`` it changes a variable
        or takes from queues, after the value that is so named.
        """
        scope = scope or {}
        if fuel <= 0:
            return self._leaf(kind, scope, in_loop)
        if touches is not None and kind == M and self._rng.random() < 0.4:
            return self._touch(fuel, depth, scope, touches, in_loop)
        ways = [w for w in GRAMMAR[kind] if self._fits(w, depth)]
        chosen = self._rng.choices(ways, [w.weight for w in ways])[0]
        return self._apply(kind, chosen, fuel, depth, scope, touches, in_loop)

    def _fits(self, production: Production, depth: int) -> bool:
        if production.control and depth >= _MAX_DEPTH:
            return False
        return not production.needs or production.needs in self._features

    def _leaf(self, kind: str, scope: Mapping[str, Sequence[str]], in_loop: bool) -> Expr:
        own = list(scope.get(kind, ()))
        outside = [t for t in self._leaves[kind] if not (in_loop and t.endswith("()"))]
        if own and self._rng.random() < 0.6:
            return Expr(self._rng.choice(own), kind)
        return Expr(self._rng.choice(outside), kind)

    def _touch(
        self,
        fuel: int,
        depth: int,
        scope: Mapping[str, Sequence[str]],
        touches: str,
        in_loop: bool,
    ) -> Expr:
        value = self.write(M, fuel - 1, depth, scope, None, in_loop)
        if "queues" in self._features and (
            "variable" not in self._features or self._rng.random() < 0.5
        ):
            self.queues += 1
            return Expr(f"({{}} * take(queues[{self.queues - 1}], {touches}))", M, (value,))
        return Expr(f"bump(v, {{}}, {touches})", M, (value,))

    def _apply(
        self,
        kind: str,
        production: Production,
        fuel: int,
        depth: int,
        scope: Mapping[str, Sequence[str]],
        touches: str | None,
        in_loop: bool,
    ) -> Expr:
        template = production.template
        names: dict[str, str] = {}
        for mark in re.findall(r"\$[iab]", template):
            if mark not in names:
                self._count += 1
                names[mark] = f"{mark[1]}{self._count}"
        inner = depth + production.control
        shares = self._shares(fuel - 1, len(production.parts))
        touching = self._touching_part(production) if touches is not None else ()
        parts = []
        for index, (part, share) in enumerate(zip(production.parts, shares, strict=True)):
            within = touches if index in touching else None
            if isinstance(part, str):
                inside = inner if production.control else depth
                parts.append(self.write(part, share, inside, scope, within, in_loop))
                continue
            bound = {k: [*v] for k, v in scope.items()}
            for mark, its_kind in part.binds.items():
                bound.setdefault(its_kind, []).append(names[mark])
            if within is not None:
                within = names["$a"]
            parts.append(self.write(part.kind, share, inner, bound, within, True))
        for mark, name in names.items():
            template = template.replace(mark, name)
        return Expr(template, kind, tuple(parts))

    def _touching_part(self, production: Production) -> tuple[int, ...]:
        """The parts that may touch state: one, or a branch each, so that their order is defined."""
        matrices = [i for i, part in enumerate(production.parts) if part == M]
        if production.template.startswith("tf.cond"):
            return tuple(matrices)
        bodies = [
            i
            for i, part in enumerate(production.parts)
            if isinstance(part, Inside) and part.kind == M and "$a" in part.binds
        ]
        if bodies:
            return (bodies[0],)
        if production.control or not matrices:
            return ()
        return (self._rng.choice(matrices),)

    def _shares(self, fuel: int, count: int) -> list[int]:
        if count == 0:
            return []
        weights = [self._rng.random() + 0.1 for _ in range(count)]
        total = sum(weights)
        return [round(fuel * weight / total) for weight in weights]
