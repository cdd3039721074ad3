"""TensorFlow's name for runnel: ``import tensorflow`` and what is inside it, answered by runnel."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from runnel.inner_modules.finder import install

_NAME = "tensorflow"
_ESTIMATOR = "tensorflow_estimator"
"""TensorFlow 1.14 and 1.15 have ``tensorflow.python.estimator`` in a package of its own, too."""


class TensorFlowName(MetaPathFinder, Loader):
    """Finds runnel's own modules under TensorFlow's name.

    Both names give one module. A second copy of it would have classes of its own, and would
    register its operations again.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, _, inside = fullname.partition(".")
        if root not in (_NAME, _ESTIMATOR):
            return None
        own = f"runnel.{inside}" if inside else "runnel"
        try:
            module = import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise ModuleNotFoundError(
                f"runnel has nothing for the module {fullname}; "
                "docs/tensorflow-names.md lists the names that it has",
                name=fullname,
            ) from None
        return ModuleSpec(fullname, self, loader_state=(module, module.__spec__))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module, _ = spec.loader_state
        assert isinstance(module, ModuleType)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python has given the module the specification of this second import; it keeps its first.
        _, first = module.__spec__.loader_state if module.__spec__ else (None, None)
        module.__spec__ = first


@contextlib.contextmanager
def imported_as_tensorflow() -> Iterator[None]:
    """Within, ``import tensorflow`` imports runnel, whether TensorFlow is installed or not."""
    install()  # first: whoever is inserted later is asked earlier
    finder = TensorFlowName()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in (_NAME, _ESTIMATOR)]:
            del sys.modules[name]
