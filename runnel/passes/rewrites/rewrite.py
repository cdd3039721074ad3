"""The rewriting passes, in the order in which they run.

A pass is a function from a program to a program. ``rewrite`` makes the changes that alter results
(for the better: see ``stabilize``). It runs for every step, also in the primitives of control flow.
``optimize`` only saves work. It is worth its time for steps that run more than once, and leaves
regions alone.
"""

from __future__ import annotations

from collections.abc import Callable

from runnel.passes.program.checker import check_program
from runnel.passes.program.program import Program
from runnel.passes.rewrites.common_subexpressions import merge_common_subexpressions
from runnel.passes.rewrites.dead_code import remove_dead_code
from runnel.passes.rewrites.fold import fold_constants
from runnel.passes.rewrites.merge_products import merge_products
from runnel.passes.rewrites.needless_broadcasts import drop_needless_broadcasts
from runnel.passes.rewrites.simplify import simplify
from runnel.passes.rewrites.split_products import split_products
from runnel.passes.rewrites.stabilize import stabilize
from runnel.passes.rewrites.sums_of_products import sum_after_loops
from runnel.passes.structure.structured import map_programs

Pass = Callable[[Program], Program]

REWRITES: tuple[Pass, ...] = (stabilize,)
OPTIMIZATIONS: tuple[Pass, ...] = (
    fold_constants,
    simplify,
    merge_products,
    merge_common_subexpressions,
    remove_dead_code,
    sum_after_loops,
    split_products,
)

check_between_passes = False
"""Set in tests: every pass must leave a valid program."""


def rewrite(program: Program) -> Program:
    """The rewrites that change what a step computes for the better; always made."""
    return _run(REWRITES, program)


def optimize(program: Program) -> Program:
    """The rewrites that only save work."""
    program = drop_needless_broadcasts(program)
    if check_between_passes:
        check_program(program, drop_needless_broadcasts.__name__)
    return _run(OPTIMIZATIONS, program)


def _run(passes: tuple[Pass, ...], program: Program) -> Program:
    map_programs(program, lambda inner: _run(passes, inner), dynamic=passes is REWRITES)
    for apply in passes:
        program = apply(program)
        if check_between_passes:
            check_program(program, apply.__name__)
    return program
