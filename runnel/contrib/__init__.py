"""``tf.contrib``: parts of TensorFlow 1's contributed library that programs rely on."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from runnel.inner_modules import finder as _finder

_finder.install()


def __getattr__(name: str) -> Any:
    """Modules are loaded when they are first used."""
    if name.startswith("_"):
        raise AttributeError(f"module 'runnel.contrib' has no attribute {name!r}")
    try:
        return import_module(f"runnel.contrib.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"runnel.contrib.{name}":
            raise
        raise AttributeError(
            f"runnel has no tf.contrib.{name}; there are: {', '.join(__dir__())}"
        ) from None


def __dir__() -> list[str]:
    """The modules, loaded or not."""
    return sorted(module.name for module in iter_modules(__path__))
