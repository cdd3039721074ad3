"""``all_util``: which names a module of a library shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["make_all", "remove_undocumented"]


def make_all(module_name: str, doc_string_modules: Sequence[ModuleType] | None = None) -> list[str]:
    """The names that a module's docstring, or those of ``doc_string_modules``, list by ``@@``."""
    modules = doc_string_modules or [sys.modules[module_name]]
    docs = [module.__doc__ or "" for module in modules]
    return [name for doc in docs for name in re.findall(r"^@@(\w+)$", doc, re.MULTILINE)]


def remove_undocumented(
    module_name: str,
    allowed_exception_list: Sequence[str] | None = None,
    doc_string_modules: Sequence[ModuleType] | None = None,
) -> None:
    """Takes the names out of a module that are neither listed by :func:`make_all` nor allowed."""
    shown = {*make_all(module_name, doc_string_modules), *(allowed_exception_list or ())}
    module = sys.modules[module_name]
    for name in set(vars(module)) - shown:
        if not name.startswith("_"):
            delattr(module, name)
