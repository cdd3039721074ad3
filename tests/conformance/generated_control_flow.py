"""Generated programs of nested conditionals and loops, as nested tuples.

A program is an expression over vectors of two elements: ``x`` and ``y`` are its inputs; ``s`` is
the variable of the innermost loop around, and ``i`` a vector made of its counter or an element.
In what follows a ``let``, ``t`` is the value that it names, and ``slope`` the gradient of that
value by ``x``, taken at the place where it is used: perhaps in a branch of a later conditional.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

LEAVES = ("x", "y", "s", "i")
UNARY = ("sin", "tanh", "neg", "gather")
BINARY = ("add", "mul", "sub", "maximum")


def programs(depth: int, slopes: bool = False) -> st.SearchStrategy[Any]:
    """Programs nested at most ``depth`` deep; with ``slopes``, that take gradients."""
    leaf = st.sampled_from((*LEAVES, "t", "slope") if slopes else LEAVES)
    if depth == 0:
        return leaf
    smaller = programs(depth - 1, slopes)
    counts = st.integers(0, 3)
    lets = [st.tuples(st.just("let"), smaller, smaller)] if slopes else []
    return st.one_of(
        *lets,
        leaf,
        st.tuples(st.sampled_from(UNARY), smaller),
        st.tuples(st.sampled_from(BINARY), smaller, smaller),
        st.tuples(st.just("cond"), smaller, smaller, smaller),
        st.tuples(st.just("case"), smaller, smaller, smaller, smaller),
        st.tuples(st.just("while"), counts, smaller, smaller),
        st.tuples(st.just("until"), smaller, smaller),
        st.tuples(st.just("array"), counts, smaller, smaller),
        st.tuples(st.just("map"), smaller, smaller),
        st.tuples(st.sampled_from(["scan", "foldl", "foldr"]), smaller, smaller, smaller),
    )


class Builder:
    """Builds programs with one of the two libraries."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def build(self, program: Any, scope: dict[str, Any]) -> Any:
        """The result of ``program``; ``scope`` maps names to tensors."""
        if program == "slope":
            return scope["slope"]() if "slope" in scope else scope["y"]
        if isinstance(program, str):
            return scope.get(program, scope["s"])
        kind, *parts = program
        if kind in UNARY or kind in BINARY:
            return self._apply(kind, [self.build(part, scope) for part in parts])
        return getattr(self, f"_{kind}", self._fold_or_scan)(scope, *self._named(kind, parts))

    def slope(self, function: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[], Any]]:
        """``function(x)``, and what gives its gradient by ``x`` where it is called."""
        value = function(x)
        zero = self.tf.UnconnectedGradients.ZERO

        def gradient() -> Any:
            (found,) = self.tf.gradients(value, x, unconnected_gradients=zero)
            return self.tf.convert_to_tensor(found)

        return value, gradient

    def _let(self, scope: dict[str, Any], first: Any, then: Any) -> Any:
        # Another x, which nothing that came before was made of.
        x = self.tf.identity(scope["x"])
        value, slope = self.slope(lambda x: self.build(first, scope | {"x": x}), x)
        return self.build(then, scope | {"t": value, "slope": slope})

    def _in_loop(self, scope: dict[str, Any], **names: Any) -> dict[str, Any]:
        """The names inside a loop, where there is no gradient of loops that are outside."""
        return {name: value for name, value in scope.items() if name != "slope"} | names

    def _named(self, kind: str, parts: list[Any]) -> list[Any]:
        return [kind, *parts] if kind in ("scan", "foldl", "foldr") else parts

    def _apply(self, kind: str, values: list[Any]) -> Any:
        tf = self.tf
        functions = {
            "sin": tf.sin,
            "tanh": tf.tanh,
            "neg": tf.negative,
            "gather": lambda v: tf.gather(v, [1, 1]) * tf.gather(v, [0, 1]),
            "add": tf.add,
            "mul": tf.multiply,
            "sub": tf.subtract,
            "maximum": tf.maximum,
        }
        return functions[kind](*values)

    def _is_large(self, program: Any, scope: dict[str, Any]) -> Any:
        return self.tf.reduce_sum(self.build(program, scope)) > 0.1

    def _cond(self, scope: dict[str, Any], pred: Any, one: Any, other: Any) -> Any:
        return self.tf.cond(
            self._is_large(pred, scope),
            lambda: self.build(one, scope),
            lambda: self.build(other, scope),
        )

    def _case(self, scope: dict[str, Any], pred: Any, one: Any, two: Any, other: Any) -> Any:
        tf = self.tf
        total = tf.reduce_sum(self.build(pred, scope))
        return tf.case(
            [
                (total > 0.5, lambda: self.build(one, scope)),
                (total > -0.3, lambda: self.build(two, scope)),
            ],
            default=lambda: self.build(other, scope),
        )

    def _index(self, i: Any) -> Any:
        return self.tf.fill([2], self.tf.cast(i, self.tf.float64) * 0.3)

    def _while(self, scope: dict[str, Any], count: int, start: Any, body: Any) -> Any:
        tf = self.tf

        def step(i: Any, s: Any) -> Any:
            return i + 1, tf.tanh(self.build(body, self._in_loop(scope, s=s, i=self._index(i))))

        first = self.build(start, scope)
        return tf.while_loop(lambda i, _: i < count, step, [tf.constant(0), first])[1]

    def _until(self, scope: dict[str, Any], start: Any, body: Any) -> Any:
        tf = self.tf

        def step(i: Any, s: Any) -> Any:
            return i + 1, tf.tanh(self.build(body, self._in_loop(scope, s=s))) + 0.4

        def goes_on(i: Any, s: Any) -> Any:
            return tf.logical_and(i < 4, tf.reduce_sum(s) < 1.5)

        first = tf.tanh(self.build(start, scope))
        return tf.while_loop(goes_on, step, [tf.constant(0), first])[1]

    def _array(self, scope: dict[str, Any], count: int, start: Any, body: Any) -> Any:
        """A loop that writes every value to an array, and reads a row of a table."""
        tf = self.tf
        table = tf.stack([scope["x"], scope["y"], scope["s"]])
        outputs = tf.TensorArray(tf.float64, size=count, element_shape=[2])

        def step(i: Any, s: Any, out: Any) -> Any:
            row = tf.gather(table, i % 3)
            value = tf.tanh(self.build(body, self._in_loop(scope, s=s, i=row)))
            return i + 1, value, out.write(i, value * row)

        first = self.build(start, scope)
        _, last, outputs = tf.while_loop(
            lambda i, *_: i < count, step, [tf.constant(0), first, outputs]
        )
        return tf.reduce_sum(outputs.stack(), 0) + last if count else last

    def _map(self, scope: dict[str, Any], over: Any, body: Any) -> Any:
        tf = self.tf

        def each(e: Any) -> Any:
            return tf.reduce_sum(self.build(body, self._in_loop(scope, i=tf.fill([2], e))))

        return tf.map_fn(each, self.build(over, scope))

    def _fold_or_scan(
        self, scope: dict[str, Any], kind: str, over: Any, start: Any, body: Any
    ) -> Any:
        tf = self.tf

        def step(s: Any, e: Any) -> Any:
            return tf.tanh(self.build(body, self._in_loop(scope, s=s, i=tf.fill([2], e))))

        elements, first = self.build(over, scope), self.build(start, scope)
        result = getattr(tf, kind)(step, elements, initializer=first)
        return tf.reduce_sum(result, 0) if kind == "scan" else result
