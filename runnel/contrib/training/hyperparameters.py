"""``HParams``: the numbers and words that a model is made with, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_NAME = re.compile(r"(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*")
_TRUE, _FALSE = ("true", "1"), ("false", "0")


class HParams:
    """Hyperparameters as attributes, each of the type of its first value.

    Example:
        >>> hparams = tf.contrib.training.HParams(learning_rate=0.1, layers=[64, 32])
        >>> hparams.parse("learning_rate=0.3,layers=[128,64]")
        >>> hparams.learning_rate
        0.3
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise NotImplementedError("HParams reads no HParamDef: give its values by name")
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter; its value says of which type it is."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError(
                    f"Multi-valued hyperparameters cannot be empty: {name}; values say the type"
                )
            self._types[name] = (type(value[0]), True)
        else:
            self._types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets the value of a hyperparameter, which must be of its type."""
        if name not in self._types:
            raise KeyError(f"Unknown hyperparameter {name}; there are {sorted(self._types)}")
        kind, several = self._types[name]
        if isinstance(value, list | tuple):
            if not several:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_converted(name, kind, item) for item in value])
        else:
            if several:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _converted(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter."""
        if name in self._types:
            delattr(self, name)
            del self._types[name]

    def parse(self, values: str) -> HParams:
        """Sets values as a text says: ``"rate=0.1,sizes=[3,4],name=x,sizes[1]=5"``."""
        for name, index, text in _assignments(values):
            if name not in self._types:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            self._set_text(name, text, index)
        return self

    def _set_text(self, name: str, text: Any, index: str | None) -> None:
        value = _value(name, self._types[name][0], text)
        if index is not None:
            whole = list(getattr(self, name))
            whole[int(index)] = value
            value = whole
        self.set_hparam(name, value)

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Sets the values of a dictionary."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json: str) -> HParams:
        """Sets the values of a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """All values by name."""
        return {name: getattr(self, name) for name in self._types}

    def to_json(
        self,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
        **kwargs: Any,
    ) -> str:
        """All values as a JSON object; functions are left out."""
        shown = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(shown, indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a hyperparameter, or ``default``."""
        return getattr(self, key) if key in self._types else default

    def get_model_structure(self) -> Any:
        """What was given as ``model_structure``."""
        return self._model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{k}={v!r}' for k, v in sorted(self.values().items()))})"


def parse_values(
    values: str, type_map: dict[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """What a text like ``"rate=0.1,sizes=[3,4],steps[2]=5"`` assigns, by name.

    ``type_map`` has the types; one element of a list gives a dictionary by its place. Names without
    a type are an error, unless ``ignore_unknown``.

    Example:
        >>> tf.contrib.training.parse_values("a=1,b[1]=2.5", {"a": int, "b": float})
        {'a': 1, 'b': {1: 2.5}}
    """
    found: dict[str, Any] = {}
    for name, index, text in _assignments(values):
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        value = _value(name, type_map[name], text)
        if index is not None and isinstance(places := found.setdefault(name, {}), dict):
            if int(index) not in places:
                places[int(index)] = value
                continue
        elif index is None and name not in found:
            found[name] = value
            continue
        raise ValueError(f"Multiple assignments to variable {name!r} in {values!r}")
    return found


def _assignments(values: str) -> Iterator[tuple[str, str | None, Any]]:
    """Names, places in lists (or None), and texts or lists of texts."""
    position = 0
    while position < len(values):
        found = _NAME.match(values, position)
        if found is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]!r}")
        name, index, position = found["name"], found["index"], found.end()
        text: Any
        if values[position : position + 1] == "[":
            end = values.find("]", position)
            if end < 0 or index is not None:
                raise ValueError(f"Could not parse hparam {name!r} in {values!r}")
            items = [item.strip() for item in values[position + 1 : end].split(",")]
            text = [item for item in items if item]
            position = end + 1
        else:
            end = values.find(",", position)
            end = len(values) if end < 0 else end
            text = values[position:end].strip()
            position = end
        yield name, index, text
        if values[position : position + 1] == ",":
            position += 1


def _value(name: str, kind: type, text: Any) -> Any:
    try:
        return [_read(kind, one) for one in text] if isinstance(text, list) else _read(kind, text)
    except ValueError:
        raise ValueError(
            f"Could not parse hparam {name!r} of type {kind.__name__!r} with value {text!r}"
        ) from None


def _read(kind: type, text: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError(text)
        return text.lower() in _TRUE
    if kind is int and "." in text:
        number = float(text)
        if not number.is_integer():
            raise ValueError(text)
        return int(number)
    return text if kind in (str, type(None)) else kind(text)


def _converted(name: str, kind: type, value: Any) -> Any:
    """``value`` as one of the type, where nothing is lost."""
    if value is None or kind is type(None) or isinstance(value, kind) and kind is not int:
        return value
    text = isinstance(value, str)
    if (kind is str) != text and kind in (str, int, float, bool):
        fits = False
    elif kind is bool or isinstance(value, bool):
        fits = kind is bool and isinstance(value, bool) or kind is not bool and kind is not int
    else:
        fits = not (kind is int and isinstance(value, float))
    if not fits:
        raise ValueError(
            f"Could not cast hparam {name!r} of type {kind.__name__!r} from value {value!r}"
        )
    return kind(value)
