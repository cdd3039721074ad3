"""A segment with the state of a session, and the forms in which it can run.

It is interpreted or compiled, in lockstep for many sets of inputs, or cut into pieces. Each form is
made when it is first wanted. When a compiled form fails, the interpreter finds the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.mapped_array import is_mapped
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import nested_nodes
from runnel.runtime.compile.executable import CompileOptions
from runnel.runtime.compile.spare_buffers import SpareBuffers
from runnel.runtime.devices.device_memory import device_error, forget_lost, is_device_error
from runnel.runtime.devices.devices import compiles_for_host
from runnel.runtime.interpret.code import Code, Passed, lower, pass_state
from runnel.runtime.interpret.interpreted_segment import InterpretedSegment
from runnel.runtime.interpret.row_updates import updated_by_rows
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.interpret.stacked_code import stacked
from runnel.runtime.interpret.stretch import Stretches
from runnel.runtime.segment.bounded_loops import bound_loops
from runnel.runtime.segment.changing_shapes import ChangingShapes
from runnel.runtime.segment.compilations import Compilations
from runnel.runtime.segment.compile_cost import compile_cost
from runnel.runtime.segment.cut_segment import CutSegment, cut_around
from runnel.runtime.segment.segment_compiler import SegmentCompiler
from runnel.runtime.segment.tier_choice import TierChoice, is_large, must_compile
from runnel.runtime.segment.variants import Variant, Variants
from runnel.runtime.state.cell import Cell
from runnel.runtime.state.options import ALWAYS, AUTO, NEVER, SessionOptions
from runnel.runtime.state.step_context import StepContext
from runnel.runtime.state.task_state import TaskState

if TYPE_CHECKING:
    from runnel.runtime.compile.bound_executable import BoundExecutable
    from runnel.runtime.compile.executable import Executable
    from runnel.runtime.lockstep.lockstep_segment import LockstepSegment

_STEPS_AHEAD = 256
"""How many steps may have been sent to an accelerator and not yet been seen to succeed. (XLA itself
has fewer on their way: it makes who sends more wait.)"""


class BoundSegment:
    """A segment bound to the state of a session; a subclass runs it in the form that pays.

    ``borrows`` says whether inputs may be the caller's arrays, which must not be in use when a
    step ends. One that ``passes_state`` is a function of values (``runtime.interpret.stretch``):
    ``passed`` is the state that it takes and gives. ``is_whole`` says that it is a whole step:
    ``options.steps_ahead`` of such may be on their way to the device. ``is_alone`` says that the
    rest of its step, if there is any, are single operations.
    """

    def __init__(
        self,
        program: Program,
        segment: Segment,
        access: StateAccess,
        task: TaskState,
        device: str,
        options: SessionOptions,
        borrows: bool = True,
        passes_state: bool = False,
        is_whole: bool = False,
        is_alone: bool = False,
    ) -> None:
        self.segment = segment
        self._program = program
        self._access = access
        self._task = task
        self._device = device if segment.device is None else segment.device.device_type
        compiles = segment.compilable and (self._device != "CPU" or compiles_for_host())
        self._mode = options.jit if compiles else NEVER
        steps_ahead = options.steps_ahead
        if steps_ahead is None:
            steps_ahead = 0 if self._device == "CPU" else _STEPS_AHEAD
        self._steps_ahead = steps_ahead if is_whole and segment.compilable else 0
        self._borrows = borrows
        self._passes_state = passes_state
        self.passed = Passed([], [], [])
        self._alike: Callable[..., Any] = partial(
            type(self), task=task, device=device, options=options, borrows=borrows
        )
        """Binds other segments to the same session."""
        self._stretches: Stretches | None = None
        if not segment.compilable and options.jit != NEVER:
            always = options.jit == ALWAYS
            self._stretches = Stretches(self._bind_stretch, self._device, always)
        nodes = [*nested_nodes(segment.nodes)]
        how = CompileOptions(
            self._device.lower(),
            is_whole,
            is_alone,
            self._steps_ahead > 0,
            options.tensor_float_32 is not False,
        )
        lowered = partial(self._lowered, COMPILED)
        self._compiler = SegmentCompiler(
            program, segment, len(nodes), how, lowered, self._device_error
        )
        self._code = self._chosen_code()
        self.only_reads = not self._code.instructions and not self._code.stores
        """True when it computes nothing: what it gives is read, or goes through it."""
        if self._mode == AUTO and self._device == "CPU":
            if self.only_reads:
                self._mode = NEVER
            elif not passes_state:
                bound_loops(self._code, self._compiler.traced_by)
        state = self.state = SegmentState(self._code, task)
        computing = (n for n in segment.nodes if n.op_def.name != "Const" and not n.op_def.variable)
        self._first = next(computing, segment.nodes[0])
        """What an error names that comes before anything has run."""
        self._tables = [task.cell(variable) for variable in updated_by_rows(self._code)]
        loads = [(cell, variable) for cell, _, variable, _ in state.loads]
        self._variants = Variants(program, segment, loads, task)
        self.choice = TierChoice(
            *(self._mode, segment, nodes, state, self._tables, self._variants, self._compiler),
            *(lambda: self._can_interpret, passes_state),
        )
        self._may_lack_value = self.choice.has_branches or bool(state.optional)
        self._spare = SpareBuffers()
        self._cuts: dict[Node, CutSegment] = {}
        self.by_shapes: CutSegment | None = None
        """The segment in pieces, where shapes change and most of the work keeps its own."""
        self._changing: ChangingShapes | None = None
        """Watches some runs once shapes change, to find what keeps its own."""
        if self._mode == AUTO and not (passes_state or self.choice.is_compiled_at_once):
            self._changing = ChangingShapes(segment)
        self.compilations = Compilations(
            *(self._compiler, self._code, state, self._variants, self.choice),
            *(self._bound, self._cut_around),
        )

    def _chosen_code(self) -> Code:
        """The instructions that say what state the segment touches: those of its usual tier."""
        if must_compile(self._mode, self._device) and self._mode != NEVER:
            if not self._passes_state:
                return self._compiler.code
        if self._mode == NEVER or self._can_interpret:
            return self._interpreted_code or self._lowered(INTERPRETED)
        self._mode = ALWAYS
        return self._compiler.code

    # Forms ----------------------------------------------------------------------------------

    @cached_property
    def _interpreted_code(self) -> Code | None:
        """What the interpreter runs; None for a kernel that exists only compiled."""
        try:
            return self._lowered(INTERPRETED)
        except errors.UnimplementedError:
            return None

    @property
    def _can_interpret(self) -> bool:
        """False for a segment that is compiled, always."""
        return self._interpreted_code is not None

    @cached_property
    def _interpreted(self) -> InterpretedSegment:
        """The segment in the interpreter, made when it is wanted: it may be compiled at once."""
        code, state = self._interpreted_code or self._code, self.state
        if code is not self._code:
            state = SegmentState(code, self._task)
        stack = None
        if self._can_interpret and not self._passes_state and not state.is_mapped:
            stack = partial(stacked, code, self._program, self._access, self._device)
        return InterpretedSegment(code, state, self._first, self._passes_state, stack)

    def _lowered(self, tier: str) -> Code:
        stretches = self._stretches if tier == INTERPRETED else None
        start = time.thread_time()
        code = lower(self._program, self.segment, self._access, self._device, tier, stretches)
        compile_cost.guess(len(self.segment.nodes), time.thread_time() - start)
        if self._passes_state:
            self.passed = pass_state(code)
        return code

    def _bind_stretch(self, program: Program, segment: Segment, access: StateAccess) -> Any:
        """What runs a stretch of something that is interpreted here."""
        segment = replace(segment, device=self.segment.device)
        # What it is given is not in use when the loop has ended, and its results are there.
        return self._alike(program, segment, access, borrows=False, passes_state=True)

    @property
    def is_compiled(self) -> bool:
        """True when the segment has been compiled, for whatever shapes."""
        return self._variants.are_compiled

    def in_lockstep(self) -> LockstepSegment | None:
        """The segment for many sets of inputs at once, where that pays and changes nothing."""
        if not self._can_interpret or self._mode == ALWAYS or self.choice.is_heavy:
            return None
        if self._device != "CPU":
            return None
        from runnel.runtime.lockstep.lockstep_segment import LockstepSegment

        return LockstepSegment.of(self._code, self.state, self._first, self._device)

    @property
    def has_effects(self) -> bool:
        """True when running the segment may leave a trace: in state, or outside."""
        return self.state.writers is not None or not self.segment.compilable

    def _takes_mapped(self, inputs: list[Any]) -> bool:
        """True when an input is an array in a mapped file, which XLA would take as a whole."""
        return self._can_interpret and any(map(is_mapped, inputs))

    def _lacks_value(self, inputs: list[Any]) -> bool:
        """True when something has no value that only an untaken branch would need."""
        if any(cell.held is None for cell in self.state.optional):
            return True
        return self.choice.has_branches and any(value is None for value in inputs)

    def _cut_around(self, node: Node | None) -> CutSegment | None:
        """The segment in pieces, of which ``node`` is one."""
        if node is None or self._passes_state:
            return None
        if node not in self._cuts:
            self._cuts[node] = self._cut([node])
        return self._cuts[node]

    def _cut(self, nodes: Collection[Node]) -> CutSegment:
        bind = partial(self._alike, self._program, access=self._access)
        return cut_around(nodes, self._program, self.segment, self._access, self._device, bind)

    def _bound(
        self, variant: Variant, executable: Executable, overwritten: list[Cell]
    ) -> BoundExecutable:
        from runnel.runtime.compile.bound_executable import BoundExecutable

        return BoundExecutable(
            executable,
            self.state,
            partial(self._variants.reshaped, variant) if variant.state_shapes else None,
            self._spare,
            self.segment.device,
            self._device != "CPU",
            self._borrows,
            self._first,
            overwritten,
            [cell for cell in self._tables if is_large(cell)],
            variant.compiled,
        )

    # Failures -------------------------------------------------------------------------------

    def _explain_failure(
        self, executable: Executable, inputs: list[Any], context: StepContext
    ) -> None:
        """Raises the error that the interpreter finds; the state is what it was before."""
        self._raise_if_interpreting_fails(inputs, context)
        names = ", ".join(repr(node.op.name) for node in executable.checked)
        why = "but does not fail when interpreted" if self._can_interpret else "at run time"
        raise errors.InvalidArgumentError(
            None,
            executable.checked[0].op,
            f"A check in this compiled step failed, {why} (one of: {names})",
        )

    def _raise_if_interpreting_fails(self, inputs: list[Any], context: StepContext) -> None:
        if self._can_interpret:
            self._interpreted.slots(inputs, context)

    def forget_lost(self) -> list[Operation]:
        """Drops the arrays that a failure of the device took along; the variables among them."""
        self._spare.forget()
        return forget_lost(self.state.cells())

    def _device_error(self, error: Exception) -> errors.OpError:
        """An error of the device, with the operations it happened in."""
        with self._task.lock:
            lost = self.forget_lost()
        return device_error(error, self.segment.nodes, self._compiler.device_name, lost)

    def _failed(self, error: Exception) -> errors.OpError | None:
        """What a device did wrong, if ``error`` is one of a device."""
        is_device = isinstance(error, RuntimeError) and is_device_error(error)
        return self._device_error(error) if is_device else None
