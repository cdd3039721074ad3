"""The devices of a session, and the places of its steps and its variables on them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runnel.graph.device_set import DeviceSet, LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.placement.cost_model import Speeds
from runnel.passes.placement.placement import Placement, check_single_device, place
from runnel.passes.placement.placement_errors import no_such_device
from runnel.passes.program.program import Program
from runnel.passes.program.state_access import variable_name
from runnel.runtime.devices.calibration import measured_speeds
from runnel.runtime.devices.devices import apply_gpu_options, is_jax_default, session_devices
from runnel.runtime.devices.transfer import Destination


class SessionDevices:
    """What a session knows of devices.

    A variable that the user has not placed stays where the first step that reads it has put it
    (its *home*), so that steps do not send it back and forth.
    """

    def __init__(
        self,
        devices: DeviceSet,
        soft: bool = False,
        log: bool = False,
        automatic: bool = True,
        speeds: Callable[[Sequence[LogicalDevice]], Speeds] = measured_speeds,
    ) -> None:
        self.devices = devices
        self.soft = soft
        self._log = log
        self._automatic = automatic
        self._speeds = speeds
        # Guards _homes and _logged: plans of several threads are prepared at once.
        self._lock = threading.Lock()
        self._homes: dict[tuple[str, str], LogicalDevice] = {}
        self._logged: set[Operation] = set()
        self.default = devices.by_preference[0]
        """Where operations go that say nothing of devices."""

    @classmethod
    def from_config(cls, config: Any) -> SessionDevices:
        """Reads a ``ConfigProto`` (or None)."""
        if config is None:
            return cls(session_devices())
        apply_gpu_options(config.gpu_options)
        return cls(
            session_devices(config.device_count, config.gpu_options.visible_device_list),
            config.allow_soft_placement,
            config.log_device_placement,
            config.graph_options.optimizer_options.opt_level >= 0,
        )

    def destination(self, wish: str, op: Operation) -> Destination:
        """The device to which ``op`` sends values by the name ``wish``."""
        found = self.devices.matching(wish)
        if not found and not self.soft:
            raise no_such_device(op, wish, self.devices, self.soft)
        return Destination(found[0] if found else self.devices.host)

    def widen(self, devices: DeviceSet) -> None:
        """Takes more devices into account; what was placed stays where it is."""
        self.devices = devices

    def place(self, program: Program) -> Placement | None:
        """The placement of a step; None when all of it is on the device that JAX uses anyway."""
        operations = [node.op for node in program.nodes]
        if len(self.devices) == 1 and not self._log and is_jax_default(self.default):
            check_single_device(operations, self.devices, self.soft)
            return None
        placement = self.placement(operations, program)
        self.note_placement(program, placement)
        used = placement.used()
        if not used or (used == [self.default] and is_jax_default(self.default)):
            return None
        return placement

    def placement(
        self, operations: Iterable[Operation], program: Program | None = None
    ) -> Placement:
        """Where ``operations`` go, and why."""
        operations = list(operations)
        with self._lock:
            homes = dict(self._homes)
        placement = place(operations, self.devices, self.soft, homes)
        if self._automatic and program is not None:
            from runnel.passes.placement.placement_cost import improve

            placement = improve(program, placement, homes, lambda: self._speeds(self.devices))
        return placement

    def note_placement(self, program: Program, placement: Placement) -> None:
        """Remembers where variables live from now on, and tells what was placed, if asked to."""
        with self._lock:
            self._note_homes(program, placement)
            if self._log:
                self._tell(placement)

    def _note_homes(self, program: Program, placement: Placement) -> None:
        touched = {
            value
            for node in program.nodes
            for position, value in enumerate(node.inputs)
            if position not in node.op_def.overwrites
        }
        for node in program.nodes:
            if node.op_def.variable:
                placed = placement.placed[node.op]
                if not placed.free or not touched.isdisjoint(node.outputs):
                    self._homes[variable_name(node.op)] = placed.device

    def _tell(self, placement: Placement) -> None:
        """Writes where operations are placed, as TensorFlow does, each once."""
        for op, placed in placement.placed.items():
            if op not in self._logged:
                self._logged.add(op)
                print(f"{op.name}: ({op.type}): {placed.device.name}", file=sys.stderr)
