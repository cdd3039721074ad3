"""Which losses and updates of a layer depend on which inputs."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.structure import flatten


def depending_on(values: list[Any], inputs: Any) -> list[Any]:
    """Those of ``values`` that are computed from ``inputs``, or, with None, from no input."""
    wanted = None if inputs is None else {id(tensor.op) for tensor in flatten(inputs)}
    found = []
    for value in values:
        ancestors = _ancestors(getattr(value, "op", value))
        if wanted is None:
            fed = any(op.type in ("Placeholder", "PlaceholderWithDefault") for op in ancestors)
            if not fed:
                found.append(value)
        elif any(id(op) in wanted for op in ancestors):
            found.append(value)
    return found


def _ancestors(op: Any) -> list[Any]:
    seen, stack = {}, [op]
    while stack:
        current = stack.pop()
        if id(current) not in seen:
            seen[id(current)] = current
            stack.extend(tensor.op for tensor in current.inputs)
            stack.extend(current.control_inputs)
    return list(seen.values())
