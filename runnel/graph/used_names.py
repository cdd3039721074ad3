"""The names of a graph's operations and scopes: which are taken, and which comes next."""

from __future__ import annotations

from runnel.graph.scopes import check_op_name

_DIGITS = frozenset("0123456789")


class UsedNames:
    """Names that differ in more than their case.

    Keeps, for a name, the number to try next behind it. A name made so, such as "x_2", has no entry
    of its own: the number of "x" tells that it is taken.

    Example:
        >>> names = UsedNames()
        >>> [names.unique("x"), names.unique("X"), names.unique("x_1"), names.unique("x", "scope")]
        ['x', 'X_1', 'x_1_1', 'scope/x']
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        key = name.lower()
        return key in self._next or self._was_numbered(key)

    def add(self, name: str) -> None:
        """Takes ``name`` as it is."""
        self._next.setdefault(name.lower(), 1)

    def unique(self, name: str, scope: str = "", mark_as_used: bool = True) -> str:
        """``name`` in ``scope``, with the first number behind it that makes it a new one."""
        if scope:
            name = f"{scope}/{name}"
        key = name.lower()
        numbers = self._next
        number = numbers.get(key)
        if number is None:
            if key[-1:] not in _DIGITS or not self._was_numbered(key):
                if not scope:
                    check_op_name(name)  # one in use has been checked
                if mark_as_used:
                    numbers[key] = 1
                return name
            number = 1
        while f"{key}_{number}" in numbers:
            number += 1
        if mark_as_used:
            numbers[key] = number + 1
        return f"{name}_{number}"

    def _was_numbered(self, key: str) -> bool:
        """True for a name that ``unique`` has made by putting a number behind another."""
        base, _, number = key.rpartition("_")
        if len(number) > 18 or not _DIGITS.issuperset(number) or number[:1] in ("", "0"):
            return False
        return int(number) < self._next.get(base, 0)
