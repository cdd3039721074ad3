"""Which tensors a debugger watches: by the names, types and element types of their operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor

_WHOLE = "DebugIdentity"


class WatchOptions:
    """Chooses tensors: those that match every pattern that is given.

    The names with ``whitelist`` are TensorFlow 1.15's, those with ``allowlist`` later ones.

    Example:
        >>> tf.debug.WatchOptions(node_name_regex_whitelist="layer1/.*")
    """

    def __init__(
        self,
        debug_ops: Any = None,
        node_name_regex_whitelist: str | None = None,
        op_type_regex_whitelist: str | None = None,
        tensor_dtype_regex_whitelist: str | None = None,
        tolerate_debug_op_creation_failures: bool = False,
        node_name_regex_allowlist: str | None = None,
        op_type_regex_allowlist: str | None = None,
        tensor_dtype_regex_allowlist: str | None = None,
    ) -> None:
        ops = [debug_ops] if isinstance(debug_ops, str) else list(debug_ops or [_WHOLE])
        if ops != [_WHOLE]:
            raise ValueError(f"debug_ops is {debug_ops!r}; only {_WHOLE!r}, the value, is there")
        self.debug_ops = ops
        patterns: list[tuple[str | None, Callable[[Tensor], str]]] = [
            (node_name_regex_whitelist or node_name_regex_allowlist, lambda t: t.op.name),
            (op_type_regex_whitelist or op_type_regex_allowlist, lambda t: t.op.type),
            (
                tensor_dtype_regex_whitelist or tensor_dtype_regex_allowlist,
                lambda t: t.dtype.base_dtype.name,
            ),
        ]
        self._patterns = [(re.compile(text), of) for text, of in patterns if text is not None]

    def matches(self, tensor: Tensor) -> bool:
        """True for a tensor that is to be watched."""
        return all(pattern.match(of(tensor)) for pattern, of in self._patterns)


WatchFunction = Callable[[Any, Any], Any]
"""From the fetches and feeds of a step to a :class:`WatchOptions`, or None for all tensors."""


def options_of(watch_fn: WatchFunction | None, fetches: Any, feeds: Any) -> WatchOptions:
    """What ``watch_fn`` chooses for a step."""
    found = None if watch_fn is None else watch_fn(fetches, feeds)
    if found is None:
        return WatchOptions()
    if isinstance(found, WatchOptions):
        return found
    raise TypeError(f"watch_fn returned {found!r}; it must return a tf.debug.WatchOptions")
