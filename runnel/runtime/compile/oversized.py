"""Finds arrays inside a traced segment that no machine can hold, before XLA sees them.

XLA ends the process when the number of an array's bytes does not fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runnel.graph.array_size import require_addressable
from runnel.graph.errors import InvalidArgumentError
from runnel.passes.program.program import Node
from runnel.runtime.compile.work_estimate import inner_jaxprs


def require_all_addressable(jaxpr: Any, nodes: Sequence[Node]) -> None:
    """An error when a value inside ``jaxpr`` is too large for any machine.

    The results of operations have been looked at one by one before; what is found here is made
    inside a kernel, so the last of ``nodes``, if there is any, stands for all of them.
    """
    for aval in _made_in(jaxpr):
        shape = getattr(aval, "shape", ())
        if all(isinstance(size, int) for size in shape):
            try:
                require_addressable(shape, getattr(aval.dtype, "itemsize", 1))
            except InvalidArgumentError as error:
                op = nodes[-1].op if nodes else None
                raise InvalidArgumentError(
                    None, op, f"{error.message} (inside a compiled cluster that ends here)"
                ) from None


def _made_in(jaxpr: Any) -> Iterator[Any]:
    """The types of the values that the equations of ``jaxpr``, and of those inside it, make."""
    pending, seen = [jaxpr], set()
    while pending:
        jaxpr = pending.pop()
        if id(jaxpr) in seen:
            continue
        seen.add(id(jaxpr))
        for equation in jaxpr.eqns:
            yield from (variable.aval for variable in equation.outvars)
            pending += inner_jaxprs(equation)
