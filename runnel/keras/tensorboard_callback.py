"""``tf.keras.callbacks.TensorBoard``: event files of losses, metrics, weights and the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.keras.backend_state import get_session
from runnel.keras.callback import Callback


class TensorBoard(Callback):
    """Writes the losses and metrics of epochs (or batches) for TensorBoard.

    ``histogram_freq`` writes histograms of the variables every so many epochs, ``write_graph``
    the graph. ``update_freq`` is ``"epoch"``, ``"batch"`` or a number of examples.

    Example:
        >>> model.fit(x, y, epochs=3, callbacks=[tf.keras.callbacks.TensorBoard("logs")])
    """

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        embeddings_layer_names: Any = None,
        embeddings_metadata: Any = None,
        embeddings_data: Any = None,
        update_freq: Any = "epoch",
        profile_batch: int = 2,
    ) -> None:
        if write_grads or write_images or embeddings_freq:
            raise ValueError(
                "TensorBoard writes no gradients, images and embeddings of Keras models: use "
                "tf.summary and tf.contrib.tensorboard.plugins.projector"
            )
        self.log_dir, self.histogram_freq, self.write_graph = (
            str(log_dir),
            histogram_freq,
            write_graph,
        )
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._seen = self._written = 0
        self._batches = 0
        self._histograms: Any = None

    def set_model(self, model: Any) -> None:
        """Opens the event file, and writes the graph."""
        from runnel.summary import FileWriter, histogram
        from runnel.summary import merge as merged

        self.model = model
        session = get_session()
        self.writer = FileWriter(self.log_dir, session.graph if self.write_graph else None)
        if self.histogram_freq and self._histograms is None:
            made = [
                histogram(weight.name.replace(":", "_"), weight, collections=[])
                for layer in model.layers
                for weight in layer.weights
            ]
            self._histograms = merged(made) if made else None

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes the values of a batch, if it is time."""
        if self.update_freq == "epoch":
            return
        found = logs or {}
        self._seen += found.get("size", 1)
        self._batches += 1
        if self.update_freq == 1 or self._seen - self._written >= self.update_freq:
            self._written = self._seen
            values = {f"batch_{k}": v for k, v in found.items() if k not in ("batch", "size")}
            self._write(values, self._batches)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the values of an epoch."""
        self._write({f"epoch_{name}": value for name, value in (logs or {}).items()}, epoch)
        if self._histograms is not None and epoch % self.histogram_freq == 0:
            self.writer.add_summary(get_session().run(self._histograms), epoch)
        self.writer.flush()

    def _write(self, values: dict[str, Any], step: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for name, value in values.items():
            part = Summary.Value(tag=name, simple_value=float(np.asarray(value)))
            self.writer.add_summary(Summary(value=[part]), step)

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the event file."""
        self.writer.close()
