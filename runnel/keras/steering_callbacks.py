"""Callbacks that end training, or change its learning rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import logging
from runnel.keras.backend_state import get_value, set_value
from runnel.keras.callback import Callback
from runnel.keras.monitored import better, current, worst


class EarlyStopping(Callback):
    """Ends training when a value has not become better for ``patience`` epochs.

    Example:
        >>> stop = tf.keras.callbacks.EarlyStopping("val_loss", patience=3)
        >>> model.fit(x, y, epochs=100, validation_split=0.1, callbacks=[stop])
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self.monitor_op = better(mode, monitor)
        self.min_delta = abs(min_delta) * (1 if self.monitor_op is np.greater else -1)
        self.wait = self.stopped_epoch = 0
        self.best_weights: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts to wait."""
        self.wait = self.stopped_epoch = 0
        self.best = worst(self.monitor_op) if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Looks at the value."""
        found = current(self.monitor, logs, "Early stopping")
        if found is None:
            return
        if self.monitor_op(found - self.min_delta, self.best):
            self.best, self.wait = found, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.restore_best_weights:
                if self.verbose > 0:
                    print("Restoring model weights from the end of the best epoch.")
                if self.best_weights is not None:
                    self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Any = None) -> None:
        """Says when training was ended."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1:05d}: early stopping")


class LearningRateScheduler(Callback):
    """Sets the learning rate of each epoch: ``schedule(epoch)`` or ``schedule(epoch, rate)``.

    Example:
        >>> tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 * 0.5 ** epoch)
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets the rate."""
        optimizer = _with_rate(self.model)
        try:
            rate = self.schedule(epoch, float(get_value(optimizer.lr)))
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, float | np.float32 | np.float64):
            raise ValueError('The output of the "schedule" function should be float.')
        set_value(optimizer.lr, rate)
        if self.verbose > 0:
            print(
                f"\nEpoch {epoch + 1:05d}: LearningRateScheduler reducing learning rate to {rate}."
            )

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the rate into the logs."""
        if logs is not None:
            logs["lr"] = get_value(self.model.optimizer.lr)


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by ``factor`` when a value has stopped to become better."""

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
        **kwargs: Any,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.min_lr = monitor, factor, min_lr
        self.min_delta = kwargs.pop("epsilon", min_delta)
        if kwargs:
            raise TypeError(f"ReduceLROnPlateau got unexpected arguments: {sorted(kwargs)}")
        self.patience, self.verbose, self.cooldown, self.mode = patience, verbose, cooldown, mode
        self._compare = better(mode, monitor)
        self._reset()

    def _reset(self) -> None:
        self.best, self.wait, self.cooldown_counter = worst(self._compare), 0, 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts to wait."""
        self._reset()

    def in_cooldown(self) -> bool:
        """True for ``cooldown`` epochs after a reduction."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Looks at the value."""
        optimizer = _with_rate(self.model)
        if logs is not None:
            logs["lr"] = get_value(optimizer.lr)
        found = current(self.monitor, logs, "Reduce LR on plateau")
        if found is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        margin = self.min_delta if self._compare is np.greater else -self.min_delta
        if self._compare(found, self.best + margin):
            self.best, self.wait = found, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                before = float(get_value(optimizer.lr))
                if before > self.min_lr:
                    rate = max(before * self.factor, self.min_lr)
                    set_value(optimizer.lr, rate)
                    if self.verbose > 0:
                        print(
                            f"\nEpoch {epoch + 1:05d}: ReduceLROnPlateau reducing learning rate to "
                            f"{rate}."
                        )
                    self.cooldown_counter, self.wait = self.cooldown, 0


def _with_rate(model: Any) -> Any:
    optimizer = model.optimizer
    if not hasattr(optimizer, "lr"):
        raise ValueError(
            'Optimizer must have a "lr" attribute: compile the model with one of '
            "tf.keras.optimizers; a tf.train optimizer takes a tensor as its learning rate"
        )
    if callable(optimizer.lr) and not hasattr(optimizer.lr, "initializer"):
        logging.warning("The learning rate is a schedule, which a callback cannot set")
    return optimizer
