"""A prompt at which the values of a stopped step are looked at."""

from __future__ import annotations

import cmd
import re
import sys
from typing import Any

import numpy as np

from runnel.debug.watch import StoppedStep, described
from runnel.graph.graph import Graph

_SHOWN = 60


class TensorPrompt(cmd.Cmd):
    """Commands on the values that a step had made when it stopped."""

    prompt = "(step) "

    def __init__(
        self, stopped: StoppedStep, seen: dict[str, Any], graph: Graph, *streams: Any
    ) -> None:
        super().__init__(stdin=streams[0] if streams else None, stdout=(*streams, None, None)[1])
        self.use_rawinput = not streams
        self._seen = seen
        self._graph = graph
        self.goes_on = False
        """True when the step is to be run to its end, whatever its values are."""
        self.intro = f"{stopped}\n\nlt, pt, ni, run, exit; help explains them"
        self._last = stopped.tensor

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def do_lt(self, pattern: str) -> None:
        """lt [PATTERN]: lists the tensors that were made, or those whose names match."""
        wanted = re.compile(pattern or ".*")
        names = [name for name in self._seen if wanted.search(name)]
        for name in names[:_SHOWN]:
            self._say(f"{name}: {described(self._seen[name])}")
        if len(names) > _SHOWN:
            self._say(f"... and {len(names) - _SHOWN} more")

    def do_pt(self, name: str) -> None:
        """pt [NAME]: prints a tensor, by default the one at which the step stopped."""
        name = self._tensor(name)
        if name not in self._seen:
            self._say(f"No value of {name!r} was seen; lt lists those that were")
            return
        self._say(f"{name}: {described(self._seen[name])}")
        self._say(np.array2string(np.asarray(self._seen[name]), threshold=200))

    def do_ni(self, name: str) -> None:
        """ni [NAME]: shows an operation: its type, its inputs, where it was created."""
        name = self._tensor(name).partition(":")[0]
        try:
            op = self._graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            self._say(f"There is no operation {name!r}")
            return
        self._say(f"{op.name} ({op.type}), created at")
        for site in op.creation_site():
            self._say(f"  {site}")
        for tensor in op.inputs:
            self._say(f"  takes {tensor.name}: {described(self._seen.get(tensor.name))}")

    def do_run(self, _: str) -> bool:
        """run: runs the step again, to its end."""
        self.goes_on = True
        return True

    def do_exit(self, _: str) -> bool:
        """exit: leaves the step where it stopped, with its error."""
        return True

    do_EOF = do_exit  # noqa: N815 (what cmd calls at the end of the input)

    def emptyline(self) -> bool:
        """Repeats nothing."""
        return False

    def _tensor(self, name: str) -> str:
        name = name.strip() or self._last
        return name if ":" in name else f"{name}:0"


def has_terminal() -> bool:
    """True when somebody can be asked."""
    return bool(sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty())
