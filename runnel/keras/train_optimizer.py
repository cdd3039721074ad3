"""``tf.train``'s optimizers in a model that was compiled with one."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import name_scope
from runnel.keras.tracking import tracked_variable
from runnel.train.optimizer import Optimizer as TrainOptimizer
from runnel.variables.initializers import Zeros


class TFOptimizer:
    """An optimizer of ``tf.train``, with what a model asks of an optimizer."""

    def __init__(self, optimizer: TrainOptimizer, iterations: Any = None) -> None:
        self.optimizer = optimizer
        if iterations is None:
            with name_scope(type(self).__name__):
                iterations = tracked_variable("iterations", [], "int64", Zeros(), False)
        self.iterations = iterations

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients of ``loss``."""
        from runnel.autodiff.gradients import gradients

        return gradients(loss, list(params))

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """Operations that make one step against the gradient of ``loss``."""
        if not params:
            return [self.iterations.assign_add(1)]
        pairs = self.optimizer.compute_gradients(loss, list(params))
        return [self.optimizer.apply_gradients(pairs, global_step=self.iterations)]

    @property
    def weights(self) -> Any:
        """Refused: the optimizer's variables are in the graph's collections."""
        raise NotImplementedError(
            "An optimizer of tf.train keeps its variables in the graph: tf.global_variables()"
        )

    def get_config(self) -> Any:
        """Refused: an optimizer of ``tf.train`` has no configuration."""
        raise NotImplementedError(
            "An optimizer of tf.train has no configuration; compile the model with one of "
            "tf.keras.optimizers to save it whole"
        )
