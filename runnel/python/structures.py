"""Names of ``nest`` that are not public."""

from runnel.control_flow.structure import is_nested

__all__ = ["is_sequence"]

is_sequence = is_nested
