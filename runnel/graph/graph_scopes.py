"""The part of a graph that ``with`` blocks talk to: what is in force where an operation is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from runnel.graph.creation_site import capture_site
from runnel.graph.device import DeviceSpec, merge_device
from runnel.graph.element_lookup import ElementLookup
from runnel.graph.operation import Operation, Tensor
from runnel.graph.scopes import OneSite, ScopeState, ThreadScopes

MAPPED_FOLDER = "_mapped_folder"
"""The attribute of a variable whose value is in a mapped file: in which folder."""

_NOTHING: AbstractContextManager[None] = nullcontext()


class _Stand:
    """What a device function sees in the place of an operation: what a library put there."""

    def __init__(self, stand: Any) -> None:
        self._stand = stand
        self.device = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stand, name)


class GraphScopes(ElementLookup):
    """Control dependencies, devices, colocation and the other scopes of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = ThreadScopes()

    @property
    def _scopes(self) -> ScopeState:
        """The scopes in force in this thread."""
        return self._thread.state

    def one_creation_site(self) -> AbstractContextManager[None]:
        """The operations made in the block are the work of one line of the user's program.

        For functions that add many: finding the line once is cheaper than for each.
        """
        scopes = self._scopes
        return OneSite(scopes, scopes.site or capture_site(2))

    def control_dependencies(
        self, control_inputs: Iterable[Any] | None
    ) -> AbstractContextManager[None]:
        """Operations in the block run after ``control_inputs``; None clears those around it."""
        scopes = self._scopes
        if control_inputs is None:
            if not scopes.control_inputs and scopes.control_flow_context is None:
                return _NOTHING
            return scopes.override(control_inputs=(), control_flow_context=None)
        found = dict.fromkeys(scopes.control_inputs)
        for obj in control_inputs:
            if isinstance(obj, Tensor) or not hasattr(obj, "_as_graph_element"):
                parts = getattr(obj, "values", None)
                if parts is not None and not isinstance(obj, Tensor | Operation):
                    obj = obj.values  # IndexedSlices and the like
            element = self.as_graph_element(obj)
            found[element.op if isinstance(element, Tensor) else element] = None
        return scopes.override(control_inputs=tuple(found))

    def device(self, device_name_or_function: Any) -> AbstractContextManager[None]:
        """Operations in the block are placed on the named device; None clears those around it."""
        scopes = self._scopes
        if device_name_or_function is None:
            return scopes.with_devices(())
        if callable(device_name_or_function):
            return scopes.with_devices((*scopes.devices, device_name_or_function))
        name = merge_device("", device_name_or_function)
        return scopes.with_devices((*scopes.devices, name))

    def _apply_device_functions(self, op: Any) -> None:
        """Tells ``op``, which a library puts in the place of an operation, the device in force.

        Libraries ask so which device an operation would have here.
        """
        scopes = self._scopes
        name = scopes.device_of(_Stand(op)) if scopes.devices else ""  # type: ignore[arg-type]
        if not name:
            return
        if hasattr(op, "_set_device_from_string"):
            op._set_device_from_string(name)
        else:
            op._set_device(DeviceSpec.from_string(name))

    def colocate_with(self, op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
        """Operations in the block are placed where ``op`` is, whatever device scopes are around."""
        no_devices = {"devices": (), "static_device": "", "has_device_functions": False}
        if op is None:
            if not ignore_existing:
                raise ValueError("Trying to reset colocation (op is None) needs ignore_existing")
            return self._scopes.override(colocation=(), **no_devices)
        # A resource variable is where its handle is, not where one of its reads is.
        element = self.as_graph_element(getattr(op, "handle", op))
        target = element.op if isinstance(element, Tensor) else element
        outer = () if ignore_existing else self._scopes.colocation
        return self._scopes.override(colocation=(*outer, target), **no_devices)

    def gradient_override_map(self, op_type_map: dict[str, str]) -> AbstractContextManager[None]:
        """Operations of the given types use the gradient registered under the given name."""
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        merged = {**self._scopes.gradient_overrides, **op_type_map}
        return self._scopes.override(gradient_overrides=merged)

    def _attr_scope(self, attr_map: dict[str, Any]) -> AbstractContextManager[None]:
        return self._scopes.override(attributes={**self._scopes.attributes, **attr_map})

    def container(self, container_name: str) -> AbstractContextManager[None]:
        """Stateful operations in the block keep their state in the named container."""
        return self._scopes.override(container=container_name)

    def _mapped_variables(self, folder: str) -> AbstractContextManager[None]:
        return self._scopes.override(mapped_folder=folder)

    @property
    def _container(self) -> str:
        return self._scopes.container

    def _get_control_flow_context(self) -> Any:
        return self._scopes.control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._scopes.control_flow_context = context
        self._scopes._refresh()

    def _apply_scopes(self, op: Operation, scopes: ScopeState) -> None:
        if scopes.control_inputs:
            producers = {tensor.op for tensor in op.inputs}
            op.control_inputs = [c for c in scopes.control_inputs if c not in producers]
        if scopes.container and op.attrs.get("container") == "" and op.op_def.stateful:
            op.attrs = {**op.attrs, "container": scopes.container}
        if scopes.mapped_folder and op.op_def.variable and _can_be_mapped(op):
            op.attrs = {**op.attrs, MAPPED_FOLDER: scopes.mapped_folder}
        for key, value in scopes.attributes.items():
            if key not in op.attrs:
                op.attrs = {**op.attrs, key: value(op) if callable(value) else value}
        if scopes.gradient_overrides:
            op.gradient_name = scopes.gradient_overrides.get(op.op_def.name)
            if op.gradient_name is not None:
                op.attrs = {**op.attrs, "_gradient_op_type": op.gradient_name}
        if scopes.devices:
            op.device = scopes.device_of(op)
        if scopes.colocation:
            colocate(op, scopes.colocation)
        context = scopes.control_flow_context
        if context is not None:
            op.control_flow_context = context
            context.AddOp(op)


def _can_be_mapped(op: Operation) -> bool:
    """False for a variable that is a single number, or holds something else than numbers."""
    return op.attrs["dtype"].np_dtype != object and op.attrs["shape"]._dims != ()


def mapped_folder(variable: Operation) -> str:
    """Where the variable that ``variable`` makes has its value in a mapped file; "" for memory."""
    folder = variable.attrs.get(MAPPED_FOLDER, "")
    return folder.decode() if isinstance(folder, bytes) else folder


def colocate(op: Operation, targets: Sequence[Operation]) -> None:
    """Places ``op`` with ``targets``, on the device of the outermost that names one."""
    names: set[str] = set()
    device = ""
    if len(targets) == 1 and "_class" not in targets[0].attrs:
        target = targets[0]
        op.attrs = {**op.attrs, "_class": [f"loc:@{target.name}"]}
        op.device = target.device or op.device
        return
    for target in targets:
        for group in target.attrs.get("_class") or (f"loc:@{target.name}",):
            names.add(group.decode() if isinstance(group, bytes) else group)
        device = device or target.device
    op.attrs = {**op.attrs, "_class": sorted(names)}
    op.device = device or op.device
