"""The checks of kernels in a traced segment: if one fails, everything stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.passes.program.program import Node
from runnel.runtime.compile.rows import taken_out


class Checks:
    """Collects what kernels check while they are traced, and gates updates by it.

    An update is gated by the checks that were traced before it. When there turn out to be more
    (``gated_early``) the segment is traced again with ``all_hold``, the conjunction of all.
    ``before`` tells whether the step before succeeded, where that is not known: as if it were one
    more check, if there are any.
    """

    def __init__(self, all_hold: Any = None, before: Any = None) -> None:
        self._before = [] if before is None else [before]
        self.flags: list[Any] = []
        self.nodes: list[Node] = []
        self.node: Node | None = None
        self._all_hold = all_hold
        self._conjunction: tuple[int, Any] = (0, None)
        self._least_known: int | None = None

    def __call__(self, holds: Any, explain: Any) -> None:
        if isinstance(holds, bool | np.bool_ | np.ndarray) and bool(np.all(holds)):
            return
        import jax.numpy as jnp

        assert self.node is not None
        self.flags.append(jnp.all(jnp.asarray(holds)))
        self.nodes.append(self.node)

    def inside(self) -> Checks:
        """The checks of a loop or a branch, which hands them out as one flag."""
        checks = Checks()
        checks.node = self.node
        return checks

    def hold(self) -> Any:
        """A scalar that is true when the checks so far hold; None where there are none."""
        import jax.numpy as jnp

        known, conjunction = self._conjunction
        if known < len(self.flags):
            conjunction = jnp.all(jnp.stack([*self._before, *self.flags]))
            self._conjunction = len(self.flags), conjunction
        return conjunction

    @property
    def gated_early(self) -> bool:
        """True when something was gated before the last check was known."""
        return self._least_known is not None and self._least_known < len(self.flags)

    def gate(self, new: Any, old: Any) -> Any:
        """``new``, or ``old`` when a check failed."""
        import jax.numpy as jnp

        holds = self.gating()
        return new if holds is None else jnp.where(holds, new, *taken_out([old]))

    def gate_indices(self, indices: Any, size: int) -> Any:
        """``indices``, or when a check failed ``size`` in their place, which scatters drop."""
        import jax.numpy as jnp

        return self.gate(indices, jnp.asarray(size, indices.dtype))

    def gating(self) -> Any:
        """What an update is gated by: a scalar, or None where nothing was checked before it."""
        if self._all_hold is not None:
            return self._all_hold
        if self._least_known is None:
            self._least_known = len(self.flags)  # which only grows
        return self.hold()
