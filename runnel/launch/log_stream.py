"""The lines of all tasks in one stream, each with the name of its task."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.text import Text

OWN_NAME = "runnel"
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


class LogStream:
    """Writes lines to a console: with coloured names on a terminal, plain otherwise."""

    def __init__(self, console: Console, names: Iterable[str], above_page: bool = False) -> None:
        """``above_page`` says that the console shows a page, above which lines go."""
        self._console = console
        self._above_page = above_page
        self._lock = threading.Lock()  # a line is written whole, whichever thread has it
        self.broken = False
        """True when nobody reads any more."""
        known = [*names, OWN_NAME]
        width = max(map(len, known))
        self._prefixes = {
            name: self._prefix(name.ljust(width), style)
            for name, style in zip(known, self._styles(len(known) - 1))
        }

    @staticmethod
    def _styles(count: int) -> list[str]:
        return [_COLOURS[i % len(_COLOURS)] for i in range(count)] + ["bold"]

    def _prefix(self, name: str, style: str) -> str:
        if not self._console.is_terminal:
            return f"{name} | "
        with self._console.capture() as rendered:
            self._console.print(Text(f"{name} | ", style=style), end="")
        return rendered.get()

    def write(self, name: str, line: str) -> None:
        """Writes a line of the task ``name``; whole, and at once."""
        text = f"{self._prefixes.get(name, name + ' | ')}{line}\n"
        with self._lock:
            try:
                if self._above_page:
                    self._console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
                else:
                    self._console.file.write(text)
                    self._console.file.flush()
            except (BrokenPipeError, ValueError):
                self.broken = True

    def tell(self, text: str) -> None:
        """Writes a line of the launcher itself."""
        self.write(OWN_NAME, text)

    def writer(self, name: str) -> Callable[[str], None]:
        """A function that writes lines of one task."""
        return lambda line: self.write(name, line)
