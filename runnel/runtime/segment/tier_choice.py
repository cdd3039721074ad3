"""Chooses the tier of a segment: interpreted at first, compiled when that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node
from runnel.passes.structure.structured import structure_of
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.segment.compile_cost import compile_cost
from runnel.runtime.segment.segment_compiler import SegmentCompiler
from runnel.runtime.segment.variants import Variant, Variants
from runnel.runtime.state.cell import Cell
from runnel.runtime.state.options import ALWAYS
from runnel.threads import usable_cores

# What a compiled call costs, roughly, on a laptop's core.
_DISPATCH_SECONDS = 40e-6
_DISPATCH_SECONDS_PER_ARRAY = 1.5e-6
_SHARE = 1 / usable_cores()
"""What a second of compiling beside the steps costs them, in seconds. Small steps are interpreted
on one core, and XLA, which does not hold Python's lock, takes the others, if there are some."""
_STALL_SECONDS = 0.1
"""For how long the machine may have held up one run of a segment."""
_LARGE_TABLE_BYTES = 1 << 20
_PRODUCTS = ("MatMul", "BatchMatMul", "Einsum", "SparseMatMul")
"""How the names of operations begin that make a segment worth compiling, whatever it updates."""
_PATIENCE = 16.0
"""How many times more has to be spent before a form is made again that was slower."""
_BLAS_TYPES = frozenset("fdFD")
"""Of these (NumPy's letters) NumPy multiplies matrices fast; of others hundreds of times slower."""


class TierChoice:
    """Which tier a segment of ``nodes``, those inside of loops included, runs in.

    ``rows`` are the cells of variables of which it updates rows. ``is_part`` says that it is a part
    of a loop or branch that is interpreted.
    """

    def __init__(
        self,
        mode: str,
        segment: Segment,
        nodes: Sequence[Node],
        state: SegmentState,
        rows: Sequence[Cell],
        variants: Variants,
        compiler: SegmentCompiler,
        can_interpret: Callable[[], bool],
        is_part: bool,
    ) -> None:
        self.is_heavy = any(map(is_interpreted_badly, nodes))
        """Whether it is compiled at once because the interpreter would take forever."""
        self.must_compile = must_compile(mode, compiler.options.platform.upper())
        self.has_branches = any(structure_of(node) is not None for node in nodes)
        arrays = len(state.loads) + len(state.stored) + len(segment.inputs) + len(segment.outputs)
        self.dispatch_seconds = _DISPATCH_SECONDS + _DISPATCH_SECONDS_PER_ARRAY * arrays
        self._row_cells = rows
        self._loads = state.load_cells
        self._variants = variants
        self._compiler = compiler
        self._can_interpret = can_interpret
        self._is_part = is_part
        self._only_updates = not compiler.options.is_whole and not any(
            node.op_def.heavy or node.op_def.name.startswith(_PRODUCTS) for node in nodes
        )

    @property
    def is_compiled_at_once(self) -> bool:
        """True when steps wait for the compiler."""
        return self.is_heavy or self.must_compile

    def keeps_tables(self) -> bool:
        """True when large tables are left where the interpreter changes rows of them.

        A segment that updates rows for ever other shapes (those of a shard that each step needs) is
        not compiled for all of them, and a table that goes from tier to tier is copied each time.
        So what reads such a table is interpreted too. Nor is one that only makes updates, of what
        others have computed: on a parameter server steps of several workers read the table
        meanwhile, and a compiled update of what is being read makes a copy of it.
        """
        if self.is_compiled_at_once:
            return False
        if self._row_cells and (self._variants.meet_several or self._only_updates):
            for cell in self._row_cells:
                if is_large(cell):
                    cell.by_rows = True
            self._row_cells = []
        return any(cell.by_rows for cell in self._loads)

    def pays(self, variant: Variant) -> bool:
        """Whether compiling for the shapes of ``variant`` is worth what it costs."""
        if variant.refused:
            return False
        if self.is_compiled_at_once:
            # A part of a loop that changes its shape from iteration to iteration is another matter.
            if not (self._is_part and self._variants.are_many and self._can_interpret()):
                return True
        # A busy machine holds single runs of a tiny step up, but neither the shortest nor, by far,
        # the average without the longest. (A loop that the data end may be short or long.)
        spent = variant.interpreted
        seconds = spent.seconds - min(spent.longest, _STALL_SECONDS)
        # Compiled for shape after shape, steps would always have a compilation beside them.
        share = 1.0 if self._variants.meet_many else _SHARE
        share *= _PATIENCE**variant.slower
        cost = share * compile_cost.seconds(self._compiler.expected_count)
        if seconds <= cost + compile_cost.seconds_to_begin():
            return False
        return max(spent.fastest, seconds / spent.runs / 10) > self.dispatch_seconds

    def usual(self, variant: Variant) -> float:
        """What an interpreted run takes, at best: on average, where the data end loops."""
        spent = variant.interpreted
        return spent.seconds / spent.runs if self.has_branches else spent.fastest


def must_compile(mode: str, device: str) -> bool:
    """True where everything is compiled from the start that can be."""
    return mode == ALWAYS or device != "CPU"


def is_large(cell: Cell) -> bool:
    """True for the cell of a variable that is better not copied."""
    return getattr(cell.held, "nbytes", 0) >= _LARGE_TABLE_BYTES


def is_interpreted_badly(node: Node) -> bool:
    """True for much work on a type for which NumPy has no fast product of matrices."""
    if not node.op_def.heavy or structure_of(node) is not None:
        return False
    dtype = node.attrs.get("T")
    return dtype is None or dtype.np_dtype.char not in _BLAS_TYPES
