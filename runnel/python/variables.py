"""Classes of variables that programs compare types with."""

from runnel.variables.resource_variable import ResourceVariable

__all__ = ["ResourceVariable"]
