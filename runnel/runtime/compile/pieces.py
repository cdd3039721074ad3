"""Cuts a long traced computation into pieces, between which it asks whether to go on.

Code that does not depend on the answer is cut into pieces of about a tenth of a second, as
estimated. Each is a branch of a conditional: when the step must stop, the rest of them is skipped.
Code that depends on the answer, the updates of variables, comes last. All of it is still one call
of one executable, which takes the state at its start and leaves the state at its end at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from runnel.runtime.compile.watch import Asker
from runnel.runtime.compile.work_estimate import equation_seconds, has_loop, is_heavy

_PIECE_SECONDS = 0.1
_MANY_EQUATIONS = 64


def is_divided(jaxpr: Any, platform: str) -> bool:
    """Whether the closed ``jaxpr``, whose last input says whether to go on, has several pieces."""
    inner = jaxpr.jaxpr
    before, _ = _apart(inner.eqns, inner.invars[-1])
    return len(_cut(before, platform)) > 1


def run_in_pieces(jaxpr: Any, platform: str, arguments: Sequence[Any], asker: Asker) -> list[Any]:
    """The results of the closed ``jaxpr``, whose last input says whether to go on.

    ``arguments`` are the others.
    """
    import jax.numpy as jnp
    from jax import lax

    inner = jaxpr.jaxpr
    *inputs, go_on = inner.invars
    values: dict[Any, Any] = dict(zip(inner.constvars, jaxpr.consts, strict=True))
    values.update(zip(inputs, arguments, strict=True))
    before, last = _apart(inner.eqns, go_on)
    pieces = _cut(before, platform)
    used_later = _used_later([*pieces, last], inner.outvars)
    going = asker.number >= 0  # which it is, but XLA does not know
    for piece, used in zip(pieces, used_later, strict=False):
        function, taken, given = _as_function(inner, piece, used)
        if not given:
            continue
        results = lax.cond(
            going,
            function,
            lambda *_, given=given: [jnp.zeros(v.aval.shape, v.aval.dtype) for v in given],
            *[values[v] for v in taken],
        )
        values.update(zip(given, results, strict=True))
        made = [result for result in results if prod(result.shape)]
        if made:
            going = going & (asker.ask(1, made[-1].ravel()[:1]) != 0)
    values[go_on] = going
    function, taken, given = _as_function(inner, last, used_later[-1])
    values.update(zip(given, function(*[values[v] for v in taken]), strict=True))
    return [v.val if _is_literal(v) else values[v] for v in inner.outvars]


def _is_literal(operand: Any) -> bool:
    """True for a number in the place of a variable."""
    return hasattr(operand, "val")


def _apart(equations: Sequence[Any], go_on: Any) -> tuple[list[Any], list[Any]]:
    """The equations that do not depend on ``go_on``, and those that do."""
    dependent = {go_on}
    before, last = [], []
    for equation in equations:
        if any(not _is_literal(v) and v in dependent for v in equation.invars):
            dependent.update(equation.outvars)
            last.append(equation)
        else:
            before.append(equation)
    return before, last


def _cut(equations: Sequence[Any], platform: str) -> list[list[Any]]:
    """Consecutive pieces; a loop is one by itself.

    XLA fuses small operations with one another, and keeps what a heavy one takes and gives in
    memory. So a piece begins with a heavy one, or when it would have become very large.
    """
    pieces: list[list[Any]] = [[]]
    seconds = 0.0
    for equation in equations:
        more = _PIECE_SECONDS if has_loop(equation) else equation_seconds(equation, platform)
        may_begin = is_heavy(equation) or len(pieces[-1]) > _MANY_EQUATIONS
        if pieces[-1] and may_begin and seconds + more > _PIECE_SECONDS:
            pieces.append([])
            seconds = 0.0
        pieces[-1].append(equation)
        seconds += more
    return pieces


def _used_later(pieces: Sequence[Sequence[Any]], results: Sequence[Any]) -> list[set[Any]]:
    """For each piece, the variables that something after it uses."""
    used = {v for v in results if not _is_literal(v)}
    found = []
    for piece in reversed(pieces):
        found.append(set(used))
        used |= {v for e in piece for v in e.invars if not _is_literal(v)}
    return found[::-1]


def _as_function(
    jaxpr: Any, equations: Sequence[Any], used: set[Any]
) -> tuple[Callable[..., list[Any]], list[Any], list[Any]]:
    """A piece of ``jaxpr`` as a function; the variables that it takes and those that it gives."""
    from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

    made = {v for e in equations for v in e.outvars}
    taken = list(
        dict.fromkeys(
            v for e in equations for v in e.invars if not _is_literal(v) and v not in made
        )
    )
    given = [v for e in equations for v in e.outvars if v in used]
    piece = jaxpr.replace(constvars=[], invars=taken, outvars=given, eqns=list(equations))
    return jaxpr_as_fun(ClosedJaxpr(piece, [])), taken, given
