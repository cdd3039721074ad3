"""Estimates how long a traced computation runs, from the shapes in its jaxpr.

The estimate decides whether a compiled segment is watched while it runs, and how often. So only its
order of magnitude matters; measured time corrects it (``runtime.compile.watch``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2, prod, sqrt
from typing import Any

from runnel.passes.placement.cost_model import TYPICAL

_EQUATION_SECONDS = {"cpu": 3e-9}
"""What one more equation costs; on an accelerator, what starting a small kernel does."""
_CACHE_BYTES = 1 << 20
_CACHE_TIMES_FASTER = 5
"""How much faster than memory a cache is, which small arrays stay in."""
_HEAVY = frozenset(
    {"dot_general", "conv_general_dilated", "sort", "scan", "while"}
    | {"cholesky", "eigh", "eig", "lu", "qr", "geqrf", "geqp3", "householder_product", "schur"}
    | {"svd", "triangular_solve", "tridiagonal", "hessenberg", "ffi_call", "custom_call"}
)
"""What has a kernel of its own. Linear algebra does the work of a product of such arrays."""
_PARTIAL = frozenset({"dynamic_slice", "gather", "slice"})
"""What reads of its operand as much as it gives."""


def seconds_of(jaxpr: Any, platform: str) -> float:
    """The time that ``jaxpr`` takes, one iteration of each ``while`` in it included."""
    return sum(equation_seconds(equation, platform) for equation in jaxpr.eqns)


def equation_seconds(equation: Any, platform: str) -> float:
    """The time that one equation takes."""
    params = equation.params
    name = equation.primitive.name
    if name == "cond":
        return max(seconds_of(branch, platform) for branch in inner_jaxprs(equation))
    if name == "scan":
        return float(params["length"] * seconds_of(params["jaxpr"].jaxpr, platform))
    if name == "while":
        # Once: how often, the loops of a program themselves say (``runtime.compile.loop_trace``).
        return seconds_of(params["body_jaxpr"].jaxpr, platform)
    inside = list(inner_jaxprs(equation))
    if inside:
        return sum(seconds_of(jaxpr, platform) for jaxpr in inside)
    speed = TYPICAL.get(platform.upper(), TYPICAL["GPU"])
    touched = equation.outvars if name in _PARTIAL else (*equation.invars, *equation.outvars)
    arrays = [v.aval for v in touched if hasattr(v.aval, "shape")]
    sizes = [prod(array.shape) for array in arrays]
    moved = sum(s * getattr(a.dtype, "itemsize", 4) for s, a in zip(sizes, arrays, strict=True))
    seconds = moved / (speed.bytes * (_CACHE_TIMES_FASTER if moved < _CACHE_BYTES else 1))
    flops = _flops(name, equation, sizes)
    if flops:
        seconds = max(seconds, flops / speed.flops)
    if name == "sort":
        seconds *= max(1.0, log2(max(sizes[0], 2)))
    return seconds + _EQUATION_SECONDS.get(platform, speed.light)


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs inside an equation: branches, bodies, functions."""
    for param in equation.params.values():
        for found in param if isinstance(param, tuple | list) else (param,):
            inner = getattr(found, "jaxpr", found)
            if hasattr(inner, "eqns"):
                yield inner


def has_loop(equation: Any) -> bool:
    """True when a loop whose end is not known to JAX is in an equation, or is it."""
    if equation.primitive.name == "while":
        return True
    return any(has_loop(e) for jaxpr in inner_jaxprs(equation) for e in jaxpr.eqns)


def is_heavy(equation: Any) -> bool:
    """True for what has a kernel of its own, or for something that is in it."""
    if equation.primitive.name in _HEAVY:
        return True
    return any(is_heavy(e) for jaxpr in inner_jaxprs(equation) for e in jaxpr.eqns)


def _flops(name: str, equation: Any, sizes: list[int]) -> float:
    """Floating-point operations, where they and not memory take the time; 0 elsewhere."""
    if name == "dot_general":
        contracted = equation.params["dimension_numbers"][0][0]
        dims = equation.invars[0].aval.shape
        return 2.0 * sizes[-1] * prod(dims[d] for d in contracted)
    if name == "conv_general_dilated":
        numbers = equation.params["dimension_numbers"]
        dims = equation.invars[1].aval.shape
        return 2.0 * sizes[-1] * prod(dims) / max(dims[numbers.rhs_spec[0]], 1)
    if name in _HEAVY and name != "sort":
        return 2.0 * sqrt(prod(float(max(size, 1)) for size in sorted(sizes)[-3:]))
    return 0.0
