"""Changes to bytes and to messages, such as a failing disk or a hostile writer makes."""

from __future__ import annotations

import json
import random
from typing import Any

_NUMBERS = [0, 1, 2, -1, 127, 255, 2**31 - 1, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, -(2**63)]


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """``content`` with some bytes changed, cut out, put in, repeated or cut off."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 5, 20])):
        place = chance.randrange(len(found) + 1)
        size = chance.choice([1, 1, 2, 4, 8, 40])
        kind = chance.randrange(7)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[place : place + size] = chance.randbytes(len(found[place : place + size]))
        elif kind == 2:
            del found[place : place + size]
        elif kind == 3:
            found[place:place] = chance.randbytes(size)
        elif kind == 4:
            found[place:place] = found[chance.randrange(len(found) + 1) :][:size]
        elif kind == 5:
            found[place : place + size] = chance.choice([b"\0", b"\xff", b"\x7f"]) * size
        elif chance.random() < 0.2:
            del found[place:]
    return bytes(found)


def mutate_message(message: Any, chance: random.Random) -> None:
    """Changes one field somewhere inside of a protocol buffer."""
    fields = [f for f, _ in message.ListFields()]
    if not fields or chance.random() < 0.1:  # also what is not there
        fields = list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = chance.choice(fields)
    kind, value = field.message_type, getattr(message, field.name)
    if kind is not None and kind.GetOptions().map_entry:
        _mutate_map(message, field, chance)
    elif hasattr(value, "append") or hasattr(value, "add"):
        _mutate_list(value, field, chance)
    elif kind is not None:
        if chance.random() < 0.08:
            message.ClearField(field.name)
        else:
            mutate_message(value, chance)
    else:
        _set(message, field, chance)


def _mutate_map(message: Any, field: Any, chance: random.Random) -> None:
    entries = getattr(message, field.name)
    keys = sorted(entries, key=str)
    if not keys:
        return
    key = chance.choice(keys)
    if chance.random() < 0.1:
        del entries[key]
    elif field.message_type.fields_by_name["value"].message_type is not None:
        mutate_message(entries[key], chance)


def _mutate_list(values: Any, field: Any, chance: random.Random) -> None:
    count = len(values)
    if not count:
        return
    place = chance.randrange(count)
    how = chance.random()
    if how < 0.1:
        del values[place]
    elif field.message_type is not None:
        if how < 0.2:
            values.add().CopyFrom(values[place])
        else:
            mutate_message(values[place], chance)
    elif how < 0.2:
        values.append(values[place])
    elif how < 0.3:
        values.append(values[place])
        values[place] = values[chance.randrange(count)]
    else:
        _try(values.__setitem__, place, _other(values[place], chance))


def _set(message: Any, field: Any, chance: random.Random) -> None:
    _try(setattr, message, field.name, _other(getattr(message, field.name), chance))


def _try(change: Any, *args: Any) -> None:
    """Makes a change, unless the field cannot have the value."""
    try:
        change(*args)
    except (ValueError, TypeError):
        return


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = [value + 1, value - 1, value * 2, -value, value ^ (1 << chance.randrange(31))]
        return chance.choice([*_NUMBERS, *near])
    if isinstance(value, float):
        return chance.choice([0.0, -value, float("nan"), float("inf"), 1e308])
    if isinstance(value, bytes):
        return mutated_bytes(value, chance)
    kept = mutated_bytes(value.encode(), chance).decode(errors="replace")
    return chance.choice(
        [kept, "", value + "x", value[: len(value) // 2], f"^{value}", f"{value}:1"]
    )


def mutated_json(value: Any, chance: random.Random) -> Any:
    """A value of JSON with one of its parts changed."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        found = dict(value)
        if chance.random() < 0.1:
            del found[key]
        else:
            found[key] = mutated_json(value[key], chance)
        return found
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [mutated_json(v, chance) if n == place else v for n, v in enumerate(value)]
    return chance.choice(
        [None, True, "", "x", [], {}, [value], {"a": value}, 1.5, json.loads("1e999"), *_NUMBERS]
    )
