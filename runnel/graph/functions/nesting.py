"""Counts the branches and loops, made of primitives, around each node of a function."""

from __future__ import annotations

from runnel.graph.functions.body import Body

_DEEPER = {"Switch": 1, "RefSwitch": 1, "Enter": 1, "RefEnter": 1}
_SHALLOWER = {"Merge": -1, "RefMerge": -1, "Exit": -1, "RefExit": -1}
_STEPS = _DEEPER | _SHALLOWER


def depths_of(body: Body) -> dict[str, int]:
    """In how many branches and loops, made of primitives, each node lies."""
    inputs = {
        name: [text.removeprefix("^").partition(":")[0] for text in node.input]
        for name, node in body.nodes.items()
    }
    ops = {name: node.op for name, node in body.nodes.items()}
    after: dict[str, int] = {}
    found: dict[str, int] = {}
    left = list(reversed(body.nodes))
    waiting: set[str] = set()
    while left:
        name = left[-1]
        sources = [s for s in inputs[name] if s in ops and ops[s] not in _BACK]
        missing = [s for s in sources if s not in found and s not in waiting]
        if name not in found and missing:
            waiting.add(name)
            left += missing
            continue
        left.pop()
        if name in found:
            continue
        in_loop = any(ops.get(s) in _BACK or ops.get(s) == "LoopCond" for s in inputs[name])
        found[name] = max((after.get(s, 0) for s in sources), default=0)
        step = 0 if in_loop else _STEPS.get(ops[name], 0)
        after[name] = max(0, found[name] + step)
        if ops[name] in _STEPS and step > 0:
            found[name] = after[name]
        waiting.discard(name)
    return found


_BACK = frozenset({"NextIteration", "RefNextIteration"})
