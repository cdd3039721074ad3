"""Automatic placement: moves operations that the user left open, if a step clearly gains.

It begins with TensorFlow's rule: every operation on the first accelerator, if that has a kernel for
it. It tries other placements on a simulation of the step (``passes.placement.cost_model``):
everything on the CPU, and each operation in turn where it would finish first, in the manner of HEFT
(Topcuoglu, Hariri, Wu 2002). It takes one if the simulated step is faster by a clear margin.

Variables move between devices of one kind only: a step that merely looks at a weight must not bring
it to the CPU, away from the steps that train it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from runnel.graph.device_set import DeviceSet, LogicalDevice
from runnel.graph.operation import Operation, Tensor
from runnel.passes.placement.cost_model import Speeds
from runnel.passes.placement.placement import Placed, Placement, Placer
from runnel.passes.program.program import Program

Assignment = dict[Operation, LogicalDevice]

_MARGIN = 0.8
"""A placement must take less than this share of the default's time."""
_MAX_OPERATIONS = 20_000


def improve(
    program: Program,
    placement: Placement,
    homes: Mapping[tuple[str, str], LogicalDevice],
    speeds: Callable[[], Speeds] = Speeds,
) -> Placement:
    """``placement``, or a better one that differs in what nobody has decided.

    ``speeds`` is asked for the speeds of the machine, if there is a choice at all.
    """
    devices = placement.devices
    if len({device.hardware for device in devices}) == 1:
        return placement  # they share one processor: nothing to gain
    operations = [node.op for node in program.nodes]
    if len(operations) > _MAX_OPERATIONS:
        return placement
    movable = {op for op in operations if len(placement.placed[op].free) > 1}
    if not movable:
        return placement
    known = speeds()
    step = _Step(program, operations, devices, known)
    default = {op: placement.placed[op].device for op in operations}
    groups = _groups(operations, devices, homes)
    choices = {op: _choices(groups[op], placement) for op in movable}
    best, best_time, what = default, step.simulate(default), ""
    allowed = best_time * _MARGIN
    on_host = {
        op: devices.host if devices.host in choices.get(op, ()) else default[op]
        for op in operations
    }
    for candidate, name in (
        (on_host, "the step is too small for an accelerator"),
        (step.earliest_finish(default, choices, groups), "it finishes earlier there"),
    ):
        time = step.simulate(candidate)
        if time < allowed and time < best_time:
            best, best_time, what = candidate, time, name
    if best is default:
        return Placement(devices, placement.placed, known)
    saved = step.simulate(default)
    reason = f"cost model: {what} ({best_time * 1e6:.0f} against {saved * 1e6:.0f} us)"
    placed = dict(placement.placed)
    for op, device in best.items():
        if device is not default[op]:
            placed[op] = Placed(device, reason, placed[op].free)
    return Placement(devices, placed, known)


def _groups(
    operations: list[Operation],
    devices: DeviceSet,
    homes: Mapping[tuple[str, str], LogicalDevice],
) -> dict[Operation, tuple[Operation, ...]]:
    placer = Placer(operations, devices, True, homes)
    placer.form_groups()
    return {op: tuple(group.members) for op, group in placer.groups.items()}


def _choices(
    group: tuple[Operation, ...],
    placement: Placement,
) -> tuple[LogicalDevice, ...]:
    placed = placement.placed[group[0]]
    if not any(op.op_def.variable for op in group):
        return placed.free
    if placed.keeps_variable:
        return (placed.device,)
    kind = placed.device.device_type
    return tuple(device for device in placed.free if device.device_type == kind)


class _Step:
    """A step to be simulated: operations in order, and who needs whose values."""

    def __init__(
        self, program: Program, operations: list[Operation], devices: DeviceSet, speeds: Speeds
    ) -> None:
        self.speeds = speeds
        self._operations = operations
        self._devices = devices
        members = set(operations)
        self._fed = set(program.feeds)
        self._inputs: dict[Operation, list[Tensor]] = {}
        for op in operations:
            self._inputs[op] = [t for t in op.inputs if t in self._fed or t.op in members]
        self._fetched: list[Tensor] = []
        by_value = {
            value: tensor
            for node in program.nodes
            for value, tensor in zip(node.outputs, node.op.outputs, strict=True)
        }
        for value in program.fetches:
            if value in by_value:
                self._fetched.append(by_value[value])
        self._cost: dict[tuple[Operation, str], float] = {}

    def _seconds(self, op: Operation, device: LogicalDevice) -> float:
        found = self._cost.get((op, device.hardware))
        if found is None:
            found = self._cost[op, device.hardware] = self.speeds.seconds(op, device)
        return found

    def simulate(self, assignment: Mapping[Operation, LogicalDevice]) -> float:
        """The time of a step with this placement."""
        run = _Run(self)
        for op in self._operations:
            run.add(op, assignment[op])
        host = self._devices.host
        ends = [run.arrival(t, assignment.get(t.op, host), host) for t in self._fetched]
        ends += run.free_at.values()
        used = {device.hardware: device for device in assignment.values()}
        overhead = sum(self.speeds.of(device).step for device in used.values())
        return max(ends, default=0.0) + overhead

    def earliest_finish(
        self,
        default: Assignment,
        choices: Mapping[Operation, tuple[LogicalDevice, ...]],
        groups: Mapping[Operation, tuple[Operation, ...]],
    ) -> Assignment:
        """Each group where its first operation would finish first.

        What comes from variables and constants alone goes where it is first used.
        """
        run = _Run(self)
        chosen: Assignment = {}
        open_sources: set[Operation] = set()
        for op in self._operations:
            if op not in chosen:
                producers = [t.op for t in self._inputs[op] if t not in self._fed]
                fed = len(producers) < len(self._inputs[op])
                options = choices.get(op) or (default[op],)
                if len(options) > 1 and not fed and open_sources.issuperset(producers):
                    open_sources.add(op)
                    continue
                device = min(options, key=lambda d: run.finish(op, d))
                self._put(op, device, choices, groups, chosen, open_sources, run)
            run.add(op, chosen[op])
        for op in self._operations:
            chosen.setdefault(op, default[op])
        return chosen

    def _put(
        self,
        op: Operation,
        device: LogicalDevice,
        choices: Mapping[Operation, tuple[LogicalDevice, ...]],
        groups: Mapping[Operation, tuple[Operation, ...]],
        chosen: Assignment,
        open_sources: set[Operation],
        run: _Run,
    ) -> None:
        """Puts ``op`` with its group on ``device``, and what it takes from open sources."""
        stack = [op]
        while stack:
            for member in groups[stack.pop()]:
                if member in chosen:
                    continue
                chosen[member] = device
                if member in open_sources:
                    open_sources.discard(member)
                    run.add(member, device)
                for tensor in self._inputs[member]:
                    source = tensor.op
                    if source in open_sources and device in choices.get(source, ()):
                        stack.append(source)


class _Run:
    """The state of a simulated step: when values are there, and when processors are free."""

    def __init__(self, step: _Step) -> None:
        self._step = step
        self._ready: dict[Operation, tuple[float, LogicalDevice]] = {}
        self._arrived: dict[tuple[Tensor, LogicalDevice], float] = {}
        self.free_at: dict[str, float] = {}

    def arrival(self, tensor: Tensor, source: LogicalDevice, device: LogicalDevice) -> float:
        """When ``tensor`` is in the memory of ``device``."""
        known = self._arrived.get((tensor, device))
        if known is not None:
            return known
        made = self._ready.get(tensor.op)
        start = made[0] if made is not None and tensor not in self._step._fed else 0.0
        if source is device or tensor.op.type == "Const":
            return start
        return start + self._step.speeds.transfer_seconds(tensor, source, device)

    def _inputs_at(self, op: Operation, device: LogicalDevice) -> Iterable[tuple[Tensor, float]]:
        for tensor in self._step._inputs[op]:
            made = self._ready.get(tensor.op)
            if made is None and tensor not in self._step._fed:
                continue  # it will come to be here
            source = self._step._devices.host if made is None else made[1]
            if tensor.dtype.name == "resource" or tensor.dtype.is_ref_dtype:
                continue  # state is where its operations are
            yield tensor, self.arrival(tensor, source, device)

    def finish(self, op: Operation, device: LogicalDevice) -> float:
        """When ``op`` would be done on ``device``."""
        start = max([at for _, at in self._inputs_at(op, device)], default=0.0)
        start = max(start, self.free_at.get(device.hardware, 0.0))
        return start + self._step._seconds(op, device)

    def add(self, op: Operation, device: LogicalDevice) -> None:
        """Runs ``op`` on ``device``."""
        for tensor, at in self._inputs_at(op, device):
            self._arrived[tensor, device] = at
        end = self.finish(op, device)
        self._ready[op] = (end, device)
        self.free_at[device.hardware] = end
