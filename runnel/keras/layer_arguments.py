"""Arguments of layers as plain values for a configuration, and back."""

from __future__ import annotations

import base64
import marshal
import types
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.keras import initializers
from runnel.keras.arguments import kind_of
from runnel.keras.custom_objects import serialize_keras_object

_UNUSUAL = ("renorm", "virtual_batch_size", "adjustment", "fused")
"""Arguments that stand in a configuration only where a program gave them."""
_SIZES = ("kernel_size", "strides", "dilation_rate", "pool_size", "size")


def described(arguments: dict[str, Any], layer: Any = None) -> dict[str, Any]:
    """Arguments as values of JSON: objects become dicts of their class and arguments.

    Of a size that is given as one number, ``layer`` knows what it means for each dimension.
    """
    usual = not any(arguments.get(name) for name in _UNUSUAL)
    found = {
        name: _described(name, value)
        for name, value in arguments.items()
        if not (usual and name.startswith(_UNUSUAL))
    }
    for name in _SIZES:
        own = getattr(layer, name, None)
        if name in found and isinstance(own, tuple):
            found[name] = list(own)
    if found.get("data_format", "") is None:
        found["data_format"] = "channels_last"
    return found


def _described(name: str, value: Any) -> Any:
    module = kind_of(name)
    if module is not None:
        if module is initializers and value is None:
            value = "glorot_uniform"
        return module.serialize(module.get(value))
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, DType):
        return value.name
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "get_config"):
        return serialize_keras_object(value)
    return value


def restored(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a configuration, in which layers and cells are layers again."""
    from runnel.keras.layers import deserialize

    found = dict(config)
    for name in ("layer", "cell", "backward_layer"):
        if isinstance(found.get(name), dict):
            found[name] = deserialize(found[name])
    if isinstance(found.get("cells"), list):
        found["cells"] = [deserialize(c) if isinstance(c, dict) else c for c in found["cells"]]
    return found


def described_function(function: Any) -> tuple[Any, str]:
    """A function for a configuration: its name, or the code of one without a name."""
    if isinstance(function, types.LambdaType) and function.__name__ == "<lambda>":
        code = base64.b64encode(marshal.dumps(function.__code__)).decode("ascii")
        cells = function.__closure__
        closure = None if cells is None else [cell.cell_contents for cell in cells]
        return [code, function.__defaults__, closure], "lambda"
    return function.__name__, "function"


def restored_function(given: Any, kind: str) -> Any:
    """The function that :func:`described_function` described."""
    if kind == "lambda":
        code, defaults, closure = given
        cells = None if closure is None else tuple(types.CellType(value) for value in closure)
        body = marshal.loads(base64.b64decode(code.encode("ascii")))
        return types.FunctionType(
            body, globals(), argdefs=None if defaults is None else tuple(defaults), closure=cells
        )
    from runnel.keras.custom_objects import get_custom_objects

    if given not in get_custom_objects():
        raise ValueError(
            f"The configuration names the function {given!r}; give it in custom_objects"
        )
    return get_custom_objects()[given]
