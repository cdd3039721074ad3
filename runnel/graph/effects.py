"""Which operations do more than return their outputs."""

from __future__ import annotations

from runnel.graph.registry import OpDef

_LOOKS = {"ReadVariableOp", "ReadFile", "MatchingFiles", "Timestamp", "VarIsInitializedOp"}
_LOOKS |= {"LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2"}
_LOOKS |= {"LookupTableExport", "LookupTableExportV2", "IsVariableInitialized"}
"""What depends on state, but leaves it alone."""
_HANDLES = {"variant", "resource"}


def has_effect(kind: OpDef) -> bool:
    """Whether running an operation of this type does more than to give its outputs."""
    if not kind.stateful or kind.variable or kind.random or kind.name in _LOOKS:
        return False
    if kind.name.startswith("Placeholder"):
        return False
    return not any(out.dtype is not None and out.dtype.name in _HANDLES for out in kind.outputs)
