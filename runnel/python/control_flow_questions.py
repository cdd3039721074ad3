"""Names of ``control_flow_util``: where operations and contexts lie."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.while_context import WhileContext
from runnel.graph.operation import Operation

__all__ = [
    "EnableControlFlowV2",
    "GetContainingCondContext",
    "GetContainingWhileContext",
    "GetContainingXLAContext",
    "IsInCond",
    "IsInWhileLoop",
    "IsInXLAContext",
    "IsLoopEnter",
    "IsLoopExit",
    "IsMerge",
    "IsSwitch",
]


def _containing(kind: Any, context: Any, stop: Any = None) -> Any:
    """The innermost context of a kind around ``context``, or it itself; not beyond ``stop``."""
    while context is not None:
        if isinstance(context, kind) or context is stop:
            return context
        context = context.outer_context
    return None


def GetContainingWhileContext(ctxt: Any, stop_ctxt: Any = None) -> Any:  # noqa: N802
    """The innermost loop that ``ctxt`` is in, or is; None outside of all."""
    return _containing(WhileContext, ctxt, stop_ctxt)


def GetContainingCondContext(ctxt: Any) -> Any:  # noqa: N802
    """The innermost branch that ``ctxt`` is in, or is; None outside of all."""
    return _containing(CondContext, ctxt)


def GetContainingXLAContext(ctxt: Any) -> Any:  # noqa: N802
    """None: XLA compiles here without a context that says so."""
    return None


def IsInWhileLoop(op: Operation) -> bool:  # noqa: N802
    """True for an operation in a loop."""
    return GetContainingWhileContext(op.control_flow_context) is not None


def IsInCond(op: Operation) -> bool:  # noqa: N802
    """True for an operation in a branch."""
    return GetContainingCondContext(op.control_flow_context) is not None


def IsInXLAContext(op: Operation) -> bool:  # noqa: N802
    """False: see :func:`GetContainingXLAContext`."""
    return False


def EnableControlFlowV2(graph: Any) -> bool:  # noqa: N802
    """False: control flow consists of primitives, as in TensorFlow 1."""
    return False


def IsSwitch(op: Operation) -> bool:  # noqa: N802
    """True for a ``Switch``."""
    return op.type in ("Switch", "RefSwitch")


def IsMerge(op: Operation) -> bool:  # noqa: N802
    """True for a ``Merge``."""
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op: Operation) -> bool:  # noqa: N802
    """True for an ``Enter``."""
    return op.type in ("Enter", "RefEnter")


def IsLoopExit(op: Operation) -> bool:  # noqa: N802
    """True for an ``Exit``."""
    return op.type in ("Exit", "RefExit")
