"""The scopes around the current line of the program, which apply to an operation made there.

Each thread has its own state for each graph: the name scope, control dependencies, devices,
colocation, attributes and gradient overrides in force.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from runnel.graph.creation_site import Site
from runnel.graph.device import chosen_device, merge_device

if TYPE_CHECKING:
    from runnel.graph.operation import Operation

_VALID_SCOPE = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.>][A-Za-z0-9_.\\/>-]*$")

DeviceFunction = Callable[[Any], Any]


class ScopeState:
    """The scopes in force in one thread for one graph."""

    __slots__ = (
        "name",
        "control_inputs",
        "devices",
        "static_device",
        "has_device_functions",
        "colocation",
        "attributes",
        "gradient_overrides",
        "container",
        "mapped_folder",
        "plain",
        "control_flow_context",
        "site",
    )

    def __init__(self) -> None:
        self.name = ""
        self.control_inputs: tuple[Operation, ...] = ()
        self.devices: tuple[str | DeviceFunction, ...] = ()
        self.static_device = ""
        """The merged device when ``devices`` holds no functions (the common case)."""
        self.has_device_functions = False
        self.colocation: tuple[Operation, ...] = ()
        self.attributes: dict[str, Any] = {}
        self.gradient_overrides: dict[str, str] = {}
        self.container = ""
        self.mapped_folder = ""
        """Where the variables made now have their values, in mapped files; "" for memory."""
        self.plain = True
        """True when nothing but the name scope applies: the fast path of ``create_op``."""
        self.control_flow_context: Any = None
        self.site: Site | None = None
        """Where the operations made now come from, if that is known already."""

    def _refresh(self) -> None:
        self.plain = not (
            self.control_inputs
            or self.devices
            or self.colocation
            or self.attributes
            or self.gradient_overrides
            or self.container
            or self.mapped_folder
            or self.control_flow_context is not None
        )

    def override(self, **values: Any) -> _Override:
        """A block in which attributes of this state are ``values``."""
        return _Override(self, values)

    def with_devices(self, devices: tuple[str | DeviceFunction, ...]) -> Any:
        """A block in which ``devices``, outermost first, are in force."""
        static = ""
        functions = any(callable(d) for d in devices)
        if not functions:
            for device in devices:
                static = merge_device(static, device)
        return self.override(devices=devices, static_device=static, has_device_functions=functions)

    def device_of(self, op: Operation) -> str:
        """The device that the scopes give to ``op`` (functions see what inner scopes chose)."""
        if not self.has_device_functions:
            return self.static_device
        # Innermost first, as TensorFlow applies them: an inner choice wins over an outer one.
        for scope in reversed(self.devices):
            if callable(scope):
                op.device = chosen_device(scope, op)
            else:
                op.device = merge_device(scope, op.device)
        return op.device


class ThreadScopes(threading.local):
    """The scopes of a graph, in each thread its own.

    Whoever makes an operation asks many things of them: the thread's are looked up once, since
    each look at an attribute of a ``threading.local`` costs as much as a function call.
    """

    def __init__(self) -> None:
        self.state = ScopeState()


class _Override:
    """Sets attributes of a state on entering, restores them on leaving."""

    __slots__ = ("_state", "_values", "_saved")

    def __init__(self, state: ScopeState, values: dict[str, Any]) -> None:
        self._state = state
        self._values = values
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        state = self._state
        self._saved.append({key: getattr(state, key) for key in self._values})
        self._set(self._values)

    def __exit__(self, *exception: object) -> None:
        self._set(self._saved.pop())

    def _set(self, values: dict[str, Any]) -> None:
        state = self._state
        for key, value in values.items():
            setattr(state, key, value)
        state._refresh()


class OneSite:
    """A block whose operations have one creation site."""

    __slots__ = ("_state", "_site", "_outer")

    def __init__(self, state: ScopeState, site: Site) -> None:
        self._state = state
        self._site = site

    def __enter__(self) -> None:
        self._outer = self._state.site
        self._state.site = self._site

    def __exit__(self, *exception: object) -> None:
        self._state.site = self._outer


@lru_cache(1024)
def check_scope_name(name: str, outermost: bool) -> None:
    """A ValueError unless ``name`` may be a name scope."""
    pattern = VALID_OP_NAME if outermost else _VALID_SCOPE
    if not pattern.match(name):
        raise ValueError(
            f"{name!r} is not a valid scope name: use letters, digits and _ . - / \\ >"
            + (", and begin with a letter, digit or dot" if outermost else "")
        )


def check_op_name(name: str) -> None:
    """A ValueError unless ``name`` may name an operation outside any scope."""
    if not VALID_OP_NAME.match(name):
        raise ValueError(
            f"{name!r} is not a valid operation name: use letters, digits and _ . - / \\ >, "
            "and begin with a letter, digit or dot"
        )
