"""Finding TensorFlow's inner modules: Python asks here for those that are no files of runnel's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from runnel.inner_modules import contrib_modules, core_modules, python_modules


def _own(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"runnel.{where}" if where else "runnel" for where in namespaces)


MODULES: dict[str, tuple[str, ...]] = {
    **{f"python.{name}": _own(where) for name, where in python_modules.MODULES.items()},
    **{f"contrib.{name}": _own(where) for name, where in contrib_modules.MODULES.items()},
    **{f"core.{name}": where for name, where in core_modules.MODULES.items()},
}
"""By their names inside ``tensorflow``, where the names of the inner modules are."""


def _namespace(where: str) -> ModuleType:
    """The namespace ``where``; where a function has the name of its module, the module."""
    root, *parts = where.split(".")
    found = import_module(root)
    for part in parts:
        inner = getattr(found, part, None)
        if not isinstance(inner, ModuleType):
            inner = import_module(f"{found.__name__}.{part}")
        found = inner
    return found


def _inside(fullname: str) -> str:
    """The name of a module inside ``runnel``, under whatever name runnel is imported."""
    root, _, inside = fullname.partition(".")
    package = sys.modules.get(root)
    return inside if getattr(package, "__name__", None) == "runnel" else ""


class InnerModules(MetaPathFinder, Loader):
    """Makes the modules of the tables, and the packages around them, when they are imported."""

    def __init__(self) -> None:
        parts = [name.split(".") for name in MODULES]
        self._packages = {".".join(p[:n]) for p in parts for n in range(1, len(p) + 1)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if _inside(fullname) not in self._packages:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None:
            return ModuleSpec(fullname, self, is_package=True)
        # What is a package in TensorFlow may be one file here: inner modules make it a package too.
        if spec.submodule_search_locations is None:
            spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        inside = _inside(module.__name__)
        namespaces = MODULES.get(inside, ())

        def find(name: str) -> Any:
            if name == "__all__":
                return _public_names(namespaces)
            if not name.startswith("__"):
                if f"{inside}.{name}" in self._packages:
                    return import_module(f"{module.__name__}.{name}")
                for where in namespaces:
                    try:
                        return getattr(_namespace(where), name)
                    except (AttributeError, ModuleNotFoundError):
                        continue
                if (other := _imported_module(name)) is not None:
                    return import_module(f"{module.__name__.partition('.')[0]}.{other}")
            raise AttributeError(
                f"runnel has nothing for {name!r} of TensorFlow's inner module "
                f"tensorflow.{inside}; docs/tensorflow-names.md lists the public names"
            )

        module.__doc__ = f"TensorFlow's ``{inside}``, answered from public names."
        module.__dict__["__getattr__"] = find
        for name in self._functions_named_like_modules(inside, namespaces):
            # As in TensorFlow, whose packages import their modules and then the names in these.
            import_module(f"{module.__name__}.{name}")
            setattr(module, name, _callable(namespaces, name))

    def _functions_named_like_modules(self, inside: str, namespaces: tuple[str, ...]) -> list[str]:
        """The modules of a package whose names are those of functions that the package has, too."""
        if not namespaces:
            return []
        start = f"{inside}."
        inner = [name.removeprefix(start) for name in self._packages if name.startswith(start)]
        return [n for n in inner if "." not in n and _callable(namespaces, n) is not None]


def _callable(namespaces: tuple[str, ...], name: str) -> Any:
    """What the first namespace with this name has under it, if that can be called."""
    for where in namespaces:
        try:
            found = getattr(_namespace(where), name)
        except (AttributeError, ModuleNotFoundError):
            continue
        return found if callable(found) else None
    return None


def _imported_module(name: str) -> str | None:
    """An inner module that TensorFlow's others import: programs take ``ops.rnn.array_ops``, too."""
    candidates = (f"python.{folder}.{name}" for folder in ("ops", "framework", "util", "eager"))
    return next((found for found in candidates if found in MODULES), None)


def _public_names(namespaces: tuple[str, ...]) -> list[str]:
    """What ``from module import *`` takes: the names of the first namespace that is there."""
    for where in namespaces:
        try:
            found = _namespace(where)
        except ModuleNotFoundError:
            continue
        return [n for n in getattr(found, "__all__", dir(found)) if not n.startswith("_")]
    return []


def install() -> None:
    """Has Python find the modules."""
    if not any(isinstance(finder, InnerModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, InnerModules())
