"""Which values a compiled segment can know while it is built, and so which nodes can compile."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from runnel.graph import dtypes
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.step_resources import (
    DERIVED,
    MAKERS,
    RESOURCE_OPS,
    StepResources,
    can_be_buffer,
)
from runnel.passes.structure.counters import counters_of
from runnel.passes.structure.structured import (
    Conditional,
    Loop,
    nested_nodes,
    structure_of,
    touched_by,
)

logger = logging.getLogger("runnel")

_HOST_TYPES = frozenset({dtypes.string, dtypes.variant, dtypes.resource})
# Strings among the data of these only explain a failure, which the interpreter does.
_EXPLAINING = frozenset({"Assert"})
_BOUNDING = frozenset({"Minimum", "Maximum", "Identity"})
_MAX_SPECIALIZED_RANK = 1
FEW_ITERATIONS = 32
"""Iterations for whose values a compiled loop makes room although fewer may run."""


class KnownValues:
    """Values that a compiled segment can know when it is built.

    Constants and what derives from shapes are known, since a compiled segment is built for
    concrete shapes. Small integers from outside can be: the segment is then built for that
    value.
    """

    def __init__(
        self,
        program: Program,
        resources: StepResources | None = None,
        on_host: Iterable[int] = (),
        fixed: Collection[int] | None = None,
    ) -> None:
        """``resources`` in ``on_host`` (by handle) are left to the host.

        ``fixed`` are the values from outside for which a segment may be built; if it is None all
        small integers are. (In a loop's body, what differs from iteration to iteration is not.)
        """
        self._infos = program.infos
        self.constants: dict[int, Node] = {}
        self._fixed = fixed
        self._known: set[int] = {
            value
            for value in (program.feeds.values() if fixed is None else fixed)
            if self._can_specialize(value)
        }
        self._root_of = dict(resources.root_of) if resources is not None else {}
        self._on_host = frozenset(on_host)
        self._certain: set[int] = set()
        """Values that are known from constants and shapes alone."""
        self._pushes_known: dict[int, bool] = {}
        """For each stack, whether all that is pushed on it is certain."""
        self._growing: set[int] = set()
        """The handles of arrays that grow when something is written behind their end."""
        self._grows = False
        """Whether something is written to one of them."""
        self._counting: set[int] = set()
        """Counters of the loops around that run from a known value to a known value."""
        self._in_branch = False
        self._bounded: dict[int, frozenset[int]] = {}
        """Values with an upper limit that is known, and the known values that say so."""
        self._needs: dict[Node, frozenset[int]] = {}
        """What must be known of the inputs of a structured node."""
        self._inside: dict[Node, frozenset[int]] = {}
        """What must be known inside a structured node."""
        self._counted: dict[Node, frozenset[int]] = {}
        """What must be known to know how often a loop runs, where that can be known."""

    def _can_specialize(self, value: int) -> bool:
        info = self._infos[value]
        small = info.dims is not None and len(info.dims) <= _MAX_SPECIALIZED_RANK
        return small and (info.dtype.is_integer or info.dtype.is_bool)

    def is_constant(self, node: Node) -> bool:
        """True for a constant that has been visited."""
        return bool(node.outputs) and node.outputs[0] in self.constants

    def visit(self, node: Node, state: StateAccess, device: str) -> bool:
        """Notes what ``node`` makes known; returns whether it can be compiled."""
        op_def = node.op_def
        if op_def.variable:
            return True
        if op_def.name == "Const" and not node.control:
            self.constants[node.outputs[0]] = node
            self._known.add(node.outputs[0])
            self._certain.add(node.outputs[0])
            return True
        if structure_of(node) is not None:
            return self._visit_structured(node, device)
        if op_def.name in RESOURCE_OPS:
            return self._visit_resource(node)
        compilable = (
            op_def.can_compile(device, node.dtype)
            and not op_def.allows_uninitialized
            and not self._has_host_types(node, state)
        )
        if compilable and op_def.static_inputs:
            compilable = self._known.issuperset(self._static_values(node))
        if not compilable:
            self.leave(node)
        elif op_def.known_from_shapes or (
            not op_def.stateful and self._known.issuperset(node.inputs)
        ):
            self._known.update(node.outputs)
            if op_def.known_from_shapes or self._certain.issuperset(node.inputs):
                self._certain.update(node.outputs)
        if compilable and op_def.name in _BOUNDING:
            self._note_bound(node)
        if op_def.name == "Identity" and node.inputs[0] in self._counting:
            self._counting.update(node.outputs)
        return compilable

    def leave(self, node: Node) -> None:
        """Notes what ``node``, which the host runs, makes known."""
        if self._fixed is None:
            self._known.update(v for v in node.outputs if self._can_specialize(v))

    def _note_bound(self, node: Node) -> None:
        """Minimum(a, b) has an upper limit if one of the two has; Maximum if both have."""
        if self._infos[node.outputs[0]].dims != ():
            return
        limits = [self._limit_of(value) for value in node.inputs]
        found = [limit for limit in limits if limit is not None]
        if len(found) >= (1 if node.op_def.name == "Minimum" else len(limits)):
            self._bounded[node.outputs[0]] = frozenset().union(*found)

    def _limit_of(self, value: int) -> frozenset[int] | None:
        if value in self._known:
            return frozenset({value})
        return self._bounded.get(value)

    # Stacks and arrays ----------------------------------------------------------------------

    def _visit_resource(self, node: Node) -> bool:
        name = node.op_def.name
        handle = node.outputs[0] if name in MAKERS else node.inputs[0]
        root = self._root_of.get(handle)
        if root is None or root in self._on_host or not can_be_buffer(node):
            return False
        if not self._known.issuperset(self._static_values(node)):
            return False
        if handle in self._growing and not self._size_is_known(node):
            return False
        if name == "TensorArrayV3" and node.attrs["dynamic_size"]:
            self._growing.add(handle)
        elif name == "TensorArraySizeV3":
            self._known.update(node.outputs)
        elif name in DERIVED:
            self._root_of[node.outputs[0]] = root
        elif name == "StackPushV2":
            certain = node.inputs[1] in self._certain
            self._pushes_known[root] = certain and self._pushes_known.get(root, True)
        elif name == "StackPopV2" and self._pushes_known.get(root, False):
            self._known.update(node.outputs)
            self._certain.update(node.outputs)
        return True

    def _size_is_known(self, node: Node) -> bool:
        """True when the size of a growing array is known after ``node``, once loops have ended."""
        name = node.op_def.name
        if name == "TensorArrayWriteV3":
            self._grows = True
            index = node.inputs[1]
            return not self._in_branch and (index in self._known or index in self._counting)
        if name in ("TensorArrayScatterV3", "TensorArraySplitV3"):
            self._grows = True
            return not self._in_branch
        return True

    # Loops and conditionals -----------------------------------------------------------------

    def _visit_structured(self, node: Node, device: str) -> bool:
        if touched_by(node).reshaped:
            return False
        if any(self._infos[value].dtype.base_dtype in _HOST_TYPES for value in node.outputs):
            return False
        for value in node.inputs:
            dtype = self._infos[value].dtype.base_dtype
            root = self._root_of.get(value)
            if dtype is dtypes.resource:
                if root is None or root in self._on_host:
                    return False
            elif dtype in _HOST_TYPES:
                return False
        structure = structure_of(node)
        analysis = _Inside(self, device)
        if isinstance(structure, Loop):
            needs = analysis.of_loop(structure, node.inputs)
        else:
            assert isinstance(structure, Conditional)
            needs = analysis.of_conditional(structure, node.inputs)
        if needs is None:
            return False
        self._needs[node] = needs
        self._inside[node] = frozenset(analysis.known_inside)
        if analysis.counted is not None:
            self._counted[node] = analysis.counted
            assert isinstance(structure, Loop)
            steps = counters_of(structure).steps
            for output, position in zip(node.outputs, structure.exits, strict=True):
                if position in steps and node.inputs[position] in self._known:
                    self._known.add(output)
        return True

    @staticmethod
    def _static_values(node: Node) -> list[int]:
        """The inputs of ``node`` that a compiled segment must know."""
        static = node.op_def.static_inputs and node.op_def.static_inputs_of(node.op)
        if not static:
            return []
        found: list[int] = []
        for index, item in enumerate(node.op_def.group(node.inputs, node.attrs)):
            if index in static:
                found += item if isinstance(item, list) else [item]
        return found

    def _has_host_types(self, node: Node, state: StateAccess) -> bool:
        infos = self._infos
        for value in (*node.inputs, *node.outputs):
            if infos[value].dtype.np_dtype.hasobject and value not in state.variable_of:
                if node.op_def.name not in _EXPLAINING or value not in self.constants:
                    return True
        return False

    def needed(self, nodes: list[Node]) -> frozenset[int]:
        """The values that must be known to build a compiled segment of ``nodes``."""
        needed: set[int] = set()
        for node in nodes:
            if node.op_def.static_inputs:
                needed.update(self._static_values(node))
            elif node in self._needs:
                needed |= self._needs[node]
        if needed:
            for node in reversed(nodes):
                if needed.isdisjoint(node.outputs) or node.op_def.known_from_shapes:
                    continue
                if node.op_def.name == "TensorArraySizeV3":
                    continue  # what makes the array, and lets it grow, says what it needs
                if structure_of(node) is None:
                    needed.update(node.inputs)
                else:
                    needed.update(self._counted[node])
                    structure = structure_of(node)
                    assert isinstance(structure, Loop)
                    for output, position in zip(node.outputs, structure.exits, strict=True):
                        if output in needed:
                            needed.add(node.inputs[position])
        if self._inside:
            needed.update(*(self._inside[node] for node in nodes if node in self._inside))
        return frozenset(needed)


class _Inside:
    """Whether the inside of a structured node compiles, and the values that it must know."""

    def __init__(self, outside: KnownValues, device: str) -> None:
        self._outside = outside
        self._device = device
        self.known_inside: set[int] = set()
        self.counted: frozenset[int] | None = None
        """Values outside that say how often a loop runs, if they can be known."""

    def of_conditional(self, found: Conditional, inputs: Sequence[int]) -> frozenset[int] | None:
        given = dict(zip(found.parameters, inputs[1:], strict=True))
        needs: set[int] = set()
        for program in found.programs:
            inner = self._visit(program, given, in_branch=True)
            if inner is None:
                return None
            needed = self._needed(inner, program, given)
            # Tracing goes through both branches, also when the value belongs to the other one
            # and is not there.
            if any(self._outside._infos[value].optional for value in needed):
                logger.debug("a branch must know what an earlier one may leave without a value")
                return None
            needs |= needed
        return frozenset(needs)

    def of_loop(self, loop: Loop, inputs: Sequence[int]) -> frozenset[int] | None:
        count = len(loop.variables)
        if any(self._outside._infos[v].dtype.base_dtype in _HOST_TYPES for v in loop.variables):
            return None
        given = dict(zip(loop.invariants, inputs[count:], strict=True))
        condition = self._visit(loop.condition, given)
        if condition is None:
            return None
        inside = {value: value for value in loop.condition.fetches[1:]}
        self.counted = self._count(loop, condition, given, inputs)
        counting: set[int] = set()
        if self.counted is not None:
            for position in counters_of(loop).steps:
                if inputs[position] in self._outside._known:
                    counting.add(loop.variables[position])
        known = condition._known.intersection(inside)
        body = self._visit(loop.body, given, known, counting)
        if body is None:
            return None
        needs = self._needed(condition, loop.condition, given)
        needs |= self._needed(body, loop.body, given)
        if condition._grows or body._grows:
            if self.counted is None:
                logger.debug("an array grows in a loop, and how often it runs is not known")
                return None
            needs |= self.counted
        if _grows_stack(loop):
            bound = self._bound(loop, condition, given, inputs)
            if bound is None:
                logger.debug("a loop keeps values for its gradient, and nothing limits it")
                return None
            needs |= bound
        return frozenset(needs)

    def _visit(
        self,
        program: Program,
        given: dict[int, int],
        known: Iterable[int] = (),
        counting: Iterable[int] = (),
        in_branch: bool = False,
    ) -> KnownValues | None:
        outside = self._outside
        inner = KnownValues(program, StepResources(program), outside._on_host)
        inner._known = {p for p, value in given.items() if value in outside._known}
        inner._known.update(known)
        inner._certain = {p for p, value in given.items() if value in outside._certain}
        inner._pushes_known = outside._pushes_known
        inner._growing = {p for p, value in given.items() if value in outside._growing}
        inner._counting = {p for p, value in given.items() if value in outside._counting}
        inner._counting.update(counting)
        inner._in_branch = in_branch or outside._in_branch
        for parameter, value in given.items():
            if value in outside._root_of:
                inner._root_of[parameter] = outside._root_of[value]
            if value in outside._bounded:
                inner._bounded[parameter] = frozenset({parameter})
        access = StateAccess(program)
        for node in program.nodes:
            if not inner.visit(node, access, self._device):
                logger.debug("%r is interpreted with what is around it", node.op.name)
                return None
        outside._grows = outside._grows or inner._grows
        return inner

    def _needed(self, inner: KnownValues, program: Program, given: dict[int, int]) -> set[int]:
        needed = inner.needed(program.nodes)
        self.known_inside |= needed
        return {given[value] for value in needed if value in given}

    def _bound(
        self, loop: Loop, condition: KnownValues, given: dict[int, int], inputs: Sequence[int]
    ) -> set[int] | None:
        """What must be known for a limit on the number of iterations; None if there is none."""
        outside = self._outside
        counters = counters_of(loop)
        for counter in counters.bounds:
            sources = condition._limit_of(counter.limit)
            first = inputs[counter.variable]
            if sources is None or first not in outside._known:
                continue
            if not counters.exact and not self._is_few(counter.limit, condition, given):
                continue
            needs = {first}
            inner: set[int] = set()
            for value in sources:
                if value not in given:
                    inner.add(value)
                elif given[value] in outside._known:
                    needs.add(given[value])
                else:
                    needs |= outside._bounded[given[value]]
            inner = _made_of(inner, loop.condition)
            self.known_inside |= inner
            return needs | {given[value] for value in inner if value in given}
        return None

    def _count(
        self, loop: Loop, condition: KnownValues, given: dict[int, int], inputs: Sequence[int]
    ) -> frozenset[int] | None:
        """What must be known to know the number of iterations exactly; None if it cannot be."""
        counters = counters_of(loop)
        if not counters.exact:
            return None
        needs: set[int] = set()
        for counter in counters.bounds:
            first = inputs[counter.variable]
            if first not in self._outside._known or counter.limit not in condition._known:
                return None
            inner = _made_of({counter.limit}, loop.condition)
            needs |= {first, *(given[value] for value in inner if value in given)}
        return frozenset(needs)

    def _is_few(self, limit: int, condition: KnownValues, given: dict[int, int]) -> bool:
        """True for a limit so small that room for that many iterations is no waste.

        Where data decides when a loop ends, what its gradient needs must not take the memory of
        the largest number of iterations, but of those that run.
        """
        constants = condition.constants if limit not in given else self._outside.constants
        node = constants.get(given.get(limit, limit))
        return node is not None and int(node.attrs["value"]) <= FEW_ITERATIONS


def _made_of(values: Iterable[int], program: Program) -> set[int]:
    """``values``, and all in ``program`` that must be known for them to be."""
    found = set(values)
    for node in reversed(program.nodes):
        if not found.isdisjoint(node.outputs) and not node.op_def.known_from_shapes:
            found.update(node.inputs)
    return found


def _grows_stack(loop: Loop) -> bool:
    return any(node.op_def.name == "StackPushV2" for node in nested_nodes(loop.body.nodes))
