"""A stand-in for a program that is loaded and so need not be traced.

It has the operands and the results of the program, and one equation. JAX makes of it what it makes
of any function: the layout of a call, the donated operands, and a call without Python code. Only
the executable is another: the one that was kept. If JAX ever needs it for something else than it
was loaded for (an array on another device, say), the program itself is traced in that place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import mlir

_TARGET = "runnel_stand_in"
"""What nobody has registered: XLA never compiles a stand-in."""


class StandIn:
    """In the place of ``program()``, a function of flat operands, with such ``results``."""

    def __init__(self, results: Sequence[Any], program: Callable[[], Callable[..., Any]]) -> None:
        self.results = [jax.core.ShapedArray(result.shape, result.dtype) for result in results]
        self.program = program
        self.is_loading = True
        """False as soon as the executable has been loaded."""

    def __call__(self, *operands: Any) -> list[Any]:
        return _stand_in.bind(*operands, stand_in=self)


# jax.extend.core has the class too, and imports all of Pallas with it: 20 ms of a first step.
_stand_in: Any = type(jax.lax.add_p)("runnel_stand_in")
_stand_in.multiple_results = True


@_stand_in.def_abstract_eval
def _(*operands: Any, stand_in: StandIn) -> list[Any]:
    return stand_in.results


def _lower(context: Any, *operands: Any, stand_in: StandIn) -> Any:
    if stand_in.is_loading:
        return jax.ffi.ffi_lowering(_TARGET)(context, *operands)
    return mlir.lower_fun(stand_in.program(), multiple_results=True)(context, *operands)


mlir.register_lowering(_stand_in, _lower)
