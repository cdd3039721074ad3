"""Placement: a device for each operation of a step, and the reason for it.

Operations that must share a device form a *group*: those of one colocation group (``_class``);
those that pass a reference or a resource handle, with the variable or queue behind it; and those
that hand a value to a loop's first or next iteration, with the ``Merge`` that takes it. A group
goes to a device that every request in it admits and that has a kernel for each of its operations.
Of several, it goes to the one where a variable in it already lives, or to the first in order of
preference: accelerators before the CPU, lower numbers first. An operation that only makes or
measures a value (a constant, a shape) goes where the value is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runnel.graph import dtypes
from runnel.graph.device import DeviceSpec, parsed_device
from runnel.graph.device_set import DeviceSet, LogicalDevice
from runnel.graph.loop_edges import MERGES, NEXT_ITERATIONS
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import ENTERS
from runnel.passes.placement import placement_errors as mistakes
from runnel.passes.placement.cost_model import Speeds
from runnel.passes.placement.kernel_devices import KERNEL, MISSING, follows_values, service
from runnel.passes.program.state_access import variable_name

_MEASURES = frozenset({"Shape", "ShapeN", "Size", "Rank"})


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an operation is, and why.

    ``free`` are the devices that it could be on as well, if neither the user nor a lack of kernels
    decided it. ``keeps_variable`` tells that a variable decided, which lives there since an earlier
    step.
    """

    device: LogicalDevice
    reason: str
    free: tuple[LogicalDevice, ...] = ()
    keeps_variable: bool = False


class ColocationGroup:
    """Operations that share a device."""

    __slots__ = ("members", "spec", "wished_by", "notes", "chosen", "reason", "free", "home")

    def __init__(self) -> None:
        self.members: list[Operation] = []
        self.spec = DeviceSpec()
        """What the wishes in the group say together."""
        self.wished_by: Operation | None = None
        self.notes: dict[Operation, str] = {}
        self.chosen: LogicalDevice | None = None
        self.reason = ""
        self.free: tuple[LogicalDevice, ...] = ()
        self.home: LogicalDevice | None = None
        """Where a variable in the group lives, if that decided."""


class Placement:
    """The devices of the operations of a step."""

    def __init__(
        self,
        devices: DeviceSet,
        placed: Mapping[Operation, Placed],
        speeds: Speeds | None = None,
    ) -> None:
        self.devices = devices
        self.placed = placed
        self.speeds = speeds
        """The speeds by which devices were chosen; None where there was no choice."""

    def device_of(self, op: Operation) -> LogicalDevice:
        """The device of ``op``."""
        return self.placed[op].device

    def used(self) -> list[LogicalDevice]:
        """The devices that have something to run, in the order of the set."""
        used = {placed.device for placed in self.placed.values()}
        return [device for device in self.devices if device in used]


def _begins_iteration(op: Operation) -> bool:
    """True for what hands a loop variable to an iteration: its value is there in that one only."""
    name = op.op_def.name
    return name in NEXT_ITERATIONS or (name in ENTERS and not op.attrs["is_constant"])


def _outermost(context: Any) -> Any:
    """The loop or conditional around all the others around an operation, or None."""
    while context is not None and context.outer_context is not None:
        context = context.outer_context
    return context


class Placer:
    """Places the operations of one step."""

    def __init__(
        self,
        operations: Iterable[Operation],
        devices: DeviceSet,
        soft: bool,
        homes: Mapping[tuple[str, str], LogicalDevice] | None = None,
    ) -> None:
        self.devices = devices
        self._operations = list(operations)
        self._soft = soft
        self._homes = homes or {}
        self._parent: dict[object, object] = {}
        self.groups: dict[Operation, ColocationGroup] = {}

    def run(self) -> Placement:
        """The placement; an error says what cannot be placed, and why."""
        self.form_groups()
        for group in dict.fromkeys(self.groups.values()):
            self._choose(group)
        self._follow_loops()
        self._follow_values()
        return Placement(self.devices, self._explained())

    # Groups ---------------------------------------------------------------------------------

    def form_groups(self) -> None:
        """Finds what must be together."""
        for op in self._operations:
            root = self._root(op)
            for group in op.attrs.get("_class") or ():
                name = group if isinstance(group, str) else group.decode()
                self._parent[self._root(name)] = root
            for tensor in op.inputs:
                if self.is_reference_edge(tensor, op) or (
                    op.op_def.name in MERGES and _begins_iteration(tensor.op)
                ):
                    self._parent[self._root(tensor.op)] = self._root(op)
        by_root: dict[object, ColocationGroup] = {}
        for op in self._operations:
            name = f"loc:@{op.name}"
            if name in self._parent:  # others are placed with this one
                self._parent[self._root(name)] = self._root(op)
        for op in self._operations:
            group = by_root.setdefault(self._root(op), ColocationGroup())
            group.members.append(op)
            self.groups[op] = group
        for group in by_root.values():
            self._collect_wishes(group)

    def _root(self, item: object) -> object:
        parent = self._parent
        root = item
        while (above := parent.setdefault(root, root)) is not root:
            root = above
        while parent[item] is not root:
            parent[item], item = root, parent[item]
        return root

    @staticmethod
    def is_reference_edge(tensor: Tensor, consumer: Operation) -> bool:
        """True when ``consumer`` must be where the state is that ``tensor`` denotes."""
        if tensor.dtype == dtypes.resource:
            return True
        if not tensor.dtype.is_ref_dtype:
            return False
        op_def = consumer.op_def
        return op_def.takes_reference and (tensor is consumer.inputs[0] or op_def.has_list_inputs)

    def _collect_wishes(self, group: ColocationGroup) -> None:
        # The owner of state decides over those that touch it; among equals, the first.
        owners = [op for op in group.members if not self._touches(op)]
        for op in owners + [op for op in group.members if self._touches(op)]:
            self._add_wish(group, op, op.device, op)
            for name in op.attrs.get("_class") or ():
                anchor = self._anchor(op, name)
                if anchor is not None and anchor not in self.groups:
                    self._add_wish(group, anchor, anchor.device, op)

    def _touches(self, op: Operation) -> bool:
        """True for what must give way: it uses another's state, or hands values to it."""
        if _begins_iteration(op):
            return True
        return any(self.is_reference_edge(tensor, op) for tensor in op.inputs)

    @staticmethod
    def _anchor(op: Operation, group: str | bytes) -> Operation | None:
        """The operation that a colocation group is named after, also one outside the step."""
        name = group if isinstance(group, str) else group.decode()
        if not name.startswith("loc:@"):
            return None
        return op.graph._by_name.get(name[len("loc:@") :])

    def _add_wish(
        self, group: ColocationGroup, wisher: Operation, device: str, op: Operation
    ) -> None:
        if not device:
            return
        wish = parsed_device(device)
        if not group.spec.conflicts_with(wish):
            group.spec = group.spec.make_merged_spec(wish)
            group.wished_by = group.wished_by or wisher
            return
        assert group.wished_by is not None
        if self._touches(op):
            relation = "uses the state of"
            if _begins_iteration(op):
                relation = "must be with"
            group.notes[op] = (
                f"its own wish {device} is ignored: it {relation} {group.wished_by.name!r}, "
                f"which is on {group.spec.to_string()}"
            )
        elif self._soft:
            group.notes[op] = (
                f"its own wish {device} is dropped (soft placement): it must be with "
                f"{group.wished_by.name!r}, which asks for {group.spec.to_string()}"
            )
        else:
            raise mistakes.conflicting_colocation(wisher, wish, group.wished_by, group.spec)

    # Choosing -------------------------------------------------------------------------------

    def _choose(self, group: ColocationGroup) -> None:
        wish = group.spec.to_string()
        admitted = self.devices.matching(wish)
        op = group.wished_by or group.members[0]
        softened = ""
        if not admitted:
            if self._soft:
                anywhere = group.spec.replace(device_type=None, device_index=None).to_string()
                admitted = self.devices.matching(anywhere)
                softened = f"soft placement: there is no {wish}"
            if not admitted:
                raise mistakes.no_such_device(op, wish, self.devices, self._soft)
        able = self._able(group, admitted, strict=not group.spec.device_type)
        if not able and self._soft and group.spec.device_type:
            anywhere = group.spec.replace(device_type=None, device_index=None).to_string()
            able = self._able(group, self.devices.matching(anywhere), strict=True)
            softened = f"soft placement: there is no kernel for it on {group.spec.device_type}"
        if not able:
            lacking = self._lacking(group, admitted)
            raise mistakes.no_kernel(lacking, admitted, wish, group.members, self._soft)
        group.free = able
        group.chosen = able[0]
        group.reason = softened or self._why(wish, admitted, able)
        home = next(
            (
                home
                for member in group.members
                if member.op_def.variable
                and (home := self._homes.get(variable_name(member))) is not None
            ),
            None,
        )
        if home is not None and home in able and home is not able[0]:
            group.chosen = group.home = home
            group.reason = "its variable lives there since an earlier step"

    def _able(
        self, group: ColocationGroup, admitted: Iterable[LogicalDevice], strict: bool
    ) -> tuple[LogicalDevice, ...]:
        """The devices that can run every member; ``strict``: by a kernel of their own."""
        found = []
        verdicts: dict[str, bool] = {}
        for device in admitted:
            kind = device.device_type
            if kind not in verdicts:
                served = [service(op, kind) for op in group.members]
                verdicts[kind] = MISSING not in served and not (
                    strict and kind != "CPU" and KERNEL not in served
                )
            if verdicts[kind]:
                found.append(device)
        return tuple(found)

    @staticmethod
    def _lacking(group: ColocationGroup, admitted: Iterable[LogicalDevice]) -> Operation:
        for device in admitted:
            for op in group.members:
                if service(op, device.device_type) == MISSING:
                    return op
        return group.members[0]

    @staticmethod
    def _why(
        wish: str, admitted: tuple[LogicalDevice, ...], able: tuple[LogicalDevice, ...]
    ) -> str:
        if wish:
            said = f"asked for {wish}"
            return said if len(able) == 1 else f"{said}: the first device that it admits"
        if len(able) == len(admitted):
            return "no wish: the preferred device"
        skipped = {d.device_type for d in admitted} - {d.device_type for d in able}
        return f"no wish: there is no kernel for it on {', '.join(sorted(skipped))}"

    def _follow_loops(self) -> None:
        """What has no wish goes with the rest of its loop or conditional, if that is one place."""
        wished: dict[Any, set[LogicalDevice]] = {}
        undecided: dict[ColocationGroup, Any] = {}
        for op in self._operations:
            context = _outermost(op.control_flow_context)
            if context is None:
                continue
            group = self.groups[op]
            if group.spec.device_type and group.chosen is not None:
                if not follows_values(op):
                    wished.setdefault(context, set()).add(group.chosen)
            elif not any(member.op_def.variable for member in group.members):
                undecided[group] = context
        for group, context in undecided.items():
            devices = wished.get(context, set())
            if len(devices) == 1 and not devices.isdisjoint(group.free):
                (group.chosen,) = devices
                group.reason = "no wish: with the rest of its loop or conditional"
                group.free = (group.chosen,)

    def _follow_values(self) -> None:
        """Lone groups without a wish that make or measure a value go where the value is."""
        consumers: dict[Operation, list[Operation]] = {}
        for op in self._operations:
            for tensor in op.inputs:
                if tensor.op in self.groups:
                    consumers.setdefault(tensor.op, []).append(op)
        for op in self._operations:
            group = self.groups[op]
            if len(group.members) > 1 or group.wished_by is not None or len(group.free) == 1:
                continue
            if op.op_def.name in _MEASURES and op.inputs and op.inputs[0].op in self.groups:
                leader, relation = op.inputs[0].op, "it only looks at the shape of"
            elif not op.inputs and len(op.outputs) == 1 and len(consumers.get(op, ())) == 1:
                leader, relation = consumers[op][0], "its only consumer is"
            else:
                continue
            device = self.groups[leader].chosen
            if device is not None and device in group.free:
                group.chosen = device
                group.reason = f"no wish: {relation} {leader.name!r}"

    # Explaining -----------------------------------------------------------------------------

    def _explained(self) -> dict[Operation, Placed]:
        placed: dict[Operation, Placed] = {}
        for op in self._operations:
            group = self.groups[op]
            assert group.chosen is not None
            reason = group.reason
            leader = group.wished_by or group.members[0]
            if len(group.members) > 1 and leader is not op:
                reason = f"with {leader.name!r} ({reason})"
            note = group.notes.get(op)
            if note:
                reason = f"{reason}; {note}"
            free = () if group.spec.device_type else group.free
            placed[op] = Placed(group.chosen, reason, free, group.home is not None)
        return placed


def place(
    operations: Iterable[Operation],
    devices: DeviceSet,
    soft: bool = False,
    homes: Mapping[tuple[str, str], LogicalDevice] | None = None,
) -> Placement:
    """A device for each of ``operations``, which are all those of a step."""
    return Placer(operations, devices, soft, homes).run()


def check_single_device(
    operations: Iterable[Operation], devices: DeviceSet, soft: bool = False
) -> None:
    """The short way where there is one device: an error if an operation wants another."""
    for wish in {op.device for op in operations}:
        if not devices.matching(wish):
            anywhere = parsed_device(wish).replace(device_type=None, device_index=None)
            if not (soft and devices.matching(anywhere.to_string())):
                # In full, so that colocation has its say before a wish is refused.
                place(operations, devices, soft)
                return
