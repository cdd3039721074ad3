"""Adam for large tables."""

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation
from runnel.train.adam import AdamOptimizer
from runnel.train.optimizer import Optimizer


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that touches only the rows of a sparse gradient.

    :class:`runnel.train.AdamOptimizer` decays the moments of every row at each step, and moves
    every row by them, so a step costs as much as the table is large. This one leaves the rows alone
    that the gradient does not name, which trains large embeddings many times faster and, often, as
    well. Dense gradients are applied as there.

    Example:
        >>> tf.contrib.opt.LazyAdamOptimizer(1e-3).minimize(loss)
    """

    def _apply_rows(self, grad: IndexedSlices, var: object) -> Operation:
        return Optimizer._apply_rows(self, grad, var)
