"""``tf.keras.callbacks.ModelCheckpoint``: saves a model as it trains."""

from __future__ import annotations

from typing import Any

from runnel.keras.callback import Callback
from runnel.keras.monitored import better, current, worst


class ModelCheckpoint(Callback):
    """Saves the model, or its weights, after epochs or batches: each time, or the best.

    ``filepath`` may have the epoch and the logs in it: ``"weights.{epoch:02d}-{val_loss:.2f}"``.
    ``save_freq`` is ``"epoch"``, or a number of examples.

    Example:
        >>> keep = tf.keras.callbacks.ModelCheckpoint("best", save_best_only=True,
        ...                                           save_weights_only=True)
        >>> model.fit(x, y, epochs=10, validation_split=0.1, callbacks=[keep])
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        load_weights_on_restart: bool = False,
        **kwargs: Any,
    ) -> None:
        self.filepath, self.monitor, self.verbose = str(filepath), monitor, verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.period = kwargs.pop("period", 1)
        if kwargs:
            raise TypeError(f"ModelCheckpoint got unexpected arguments: {sorted(kwargs)}")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}")
        self.save_freq, self.load_weights_on_restart = save_freq, load_weights_on_restart
        self.monitor_op = better(mode, monitor)
        self.best = worst(self.monitor_op)
        self.epochs_since_last_save = 0
        self._seen = 0
        self._epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Loads what an earlier run has left, if asked to."""
        if self.load_weights_on_restart:
            from runnel.keras.saved_weights import exists

            if exists(self.filepath):
                self.model.load_weights(self.filepath)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Learns which epoch it is."""
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves after ``save_freq`` examples."""
        if isinstance(self.save_freq, int):
            self._seen += (logs or {}).get("size", 1)
            if self._seen >= self.save_freq:
                self._save(self._epoch, logs or {})
                self._seen = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves after an epoch."""
        self.epochs_since_last_save += 1
        if self.save_freq == "epoch" and self.epochs_since_last_save >= self.period:
            self.epochs_since_last_save = 0
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: dict[str, Any]) -> None:
        path = self.filepath.format(
            epoch=epoch + 1, **{k: v for k, v in logs.items() if k != "batch"}
        )
        if self.save_best_only:
            found = current(self.monitor, logs, "Can save best model only; it is")
            if found is None:
                return
            if not self.monitor_op(found, self.best):
                if self.verbose > 0:
                    print(
                        f"\nEpoch {epoch + 1:05d}: {self.monitor} did not improve from "
                        f"{self.best:.5f}"
                    )
                return
            if self.verbose > 0:
                print(
                    f"\nEpoch {epoch + 1:05d}: {self.monitor} improved from {self.best:.5f} to "
                    f"{found:.5f}, saving model to {path}"
                )
            self.best = found
        elif self.verbose > 0:
            print(f"\nEpoch {epoch + 1:05d}: saving model to {path}")
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)
