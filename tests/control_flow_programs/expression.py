"""Expressions of a random program: trees that are written as Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

_WIDTH = 96
_INDENT = "    "


@dataclass(frozen=True)
class Expr:
    """A piece of Python with ``{}`` for each of its parts, and the kind of value that it gives."""

    template: str
    kind: str
    parts: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        return self.template.format(*self.parts)

    @property
    def size(self) -> int:
        """The number of pieces that it is made of."""
        return 1 + sum(part.size for part in self.parts)

    def written(self, indent: str = _INDENT) -> str:
        """Its text, on several lines where one would be too long."""
        text = str(self)
        if len(indent) + len(text) <= _WIDTH or not self.parts:
            return text
        inner = indent + _INDENT
        return self.template.format(*(part._on_new_line(inner) for part in self.parts))

    def _on_new_line(self, indent: str) -> str:
        return f"\n{indent}{self.written(indent)}" if self.parts else str(self)

    def simpler(self) -> Iterator[Expr]:
        """Expressions of the same kind that are a little smaller, the smallest first.

        A name may be used where there is none: such an expression is no program.
        """
        inside = [part for part in self.walk() if part.kind == self.kind and part is not self]
        yield from sorted(inside, key=lambda part: part.size)
        for index, part in enumerate(self.parts):
            for other in part.simpler():
                parts = (*self.parts[:index], other, *self.parts[index + 1 :])
                yield replace(self, parts=parts)

    def walk(self) -> Iterator[Expr]:
        """This expression and all inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()
