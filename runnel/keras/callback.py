"""``tf.keras.callbacks.Callback``: what is called as a model trains, and what every loop has."""

from __future__ import annotations

from typing import Any

from runnel.keras.progress_bar import Progbar

_BATCH_HOOKS = (
    *("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"),
    *("on_test_batch_begin", "on_test_batch_end"),
    *("on_predict_batch_begin", "on_predict_batch_end"),
)


class Callback:
    """Methods that a loop calls; ``logs`` are the losses and metrics so far.

    ``self.model`` is the model and ``self.params`` describe the loop. Setting
    ``self.model.stop_training = True`` ends it.

    Example:
        >>> class Stop(tf.keras.callbacks.Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         self.model.stop_training = logs["loss"] < 0.1
    """

    validation_data: Any = None
    model: Any = None
    params: Any = None

    def set_params(self, params: Any) -> None:
        """Tells about the loop."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Tells which model is trained."""
        self.model = model

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before each batch of training."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After each batch of training."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After each epoch, with its validation."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before each batch of training."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After each batch of training."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before each batch of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After each batch of an evaluation."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before each batch of a prediction."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After each batch of a prediction."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Before an evaluation."""

    def on_test_end(self, logs: Any = None) -> None:
        """After an evaluation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before a prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After a prediction."""


class BaseLogger(Callback):
    """Averages the metrics of an epoch's batches into its logs."""

    def __init__(self, stateful_metrics: Any = None) -> None:
        self.stateful_metrics = set(stateful_metrics or ())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the averages."""
        self.seen = 0
        self.totals: dict[str, Any] = {}

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Adds a batch."""
        found = logs or {}
        size = found.get("size", 0)
        self.seen += size
        for name, value in found.items():
            if name in self.stateful_metrics:
                self.totals[name] = value
            else:
                self.totals[name] = self.totals.get(name, 0) + value * size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the averages into the logs."""
        if logs is None:
            return
        for name in self.params["metrics"]:
            if name in self.totals:
                stateful = name in self.stateful_metrics
                logs[name] = self.totals[name] if stateful else self.totals[name] / self.seen


class History(Callback):
    """The logs of all epochs: what ``fit`` returns.

    Example:
        >>> model.fit(x, y, epochs=3).history["loss"]
    """

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts an empty history."""
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds an epoch."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class ProgbarLogger(Callback):
    """Shows how far an epoch is, with its loss and metrics."""

    verbose = 0

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        if count_mode not in ("samples", "steps"):
            raise ValueError(f"Unknown `count_mode`: {count_mode}")
        self.use_steps = count_mode == "steps"
        self.stateful_metrics = set(stateful_metrics or ())

    @classmethod
    def for_loop(cls, model: Any, batches: Any, params: Any, verbose: int) -> ProgbarLogger:
        """The bar of a loop over batches."""
        mode = "samples" if batches.unit == "sample" else "steps"
        made = cls(mode, model.metrics_names[1:] if model._compiled is not None else None)
        steps = {"steps": batches.steps, "samples": batches.samples}
        made.set_params({**params, **steps, "verbose": verbose})
        return made

    def on_train_begin(self, logs: Any = None) -> None:
        """Learns about the loop."""
        self.verbose, self.epochs = self.params["verbose"], self.params["epochs"]

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts a bar."""
        self.seen = 0
        self.log_values: list[Any] = []
        self.target = self.params["steps" if self.use_steps else "samples"]
        if self.verbose:
            if self.epochs > 1:
                print(f"Epoch {epoch + 1}/{self.epochs}")
            unit = "step" if self.use_steps else "sample"
            self.progbar = Progbar(
                *(self.target, 30, self.verbose),
                stateful_metrics=self.stateful_metrics,
                unit_name=unit,
            )

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Forgets the last batch."""
        self.log_values = []

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Draws the bar, unless the epoch is at its end."""
        found = logs or {}
        self.seen += 1 if self.use_steps else found.get("size", 0)
        if not self.verbose:
            return
        self.log_values += [(n, found[n]) for n in self.params["metrics"] if n in found]
        if self.target is None or self.seen < self.target:
            self.progbar.update(self.seen, self.log_values)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Draws the whole bar."""
        found = logs or {}
        if self.verbose:
            self.log_values += [(n, found[n]) for n in self.params["metrics"] if n in found]
            self.progbar.update(self.seen, self.log_values)

    def learn_target(self, batches: Any, steps: int) -> None:
        """Learns, after the first epoch over a dataset, how long it is."""
        if self.use_steps and self.target is None and batches.steps is not None:
            self.target = self.params["steps"] = steps
            if self.verbose:
                self.progbar.target = steps


class CallbackList:
    """Several callbacks, called one after the other."""

    def __init__(self, callbacks: Any = None) -> None:
        self.callbacks = list(callbacks or ())
        self.params: dict[str, Any] = {}
        self.model: Any = None
        self.watches_batches = any(_watches(c) for c in self.callbacks)

    def append(self, callback: Any) -> None:
        """Adds a callback."""
        self.callbacks.append(callback)
        self.watches_batches = self.watches_batches or _watches(callback)

    def set_params(self, params: Any) -> None:
        """Tells all about the loop."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Tells all which model is trained."""
        self.model = model
        for callback in self.callbacks:
            callback.set_model(model)

    def batch_begin(self, mode: str, batch: int, logs: Any) -> None:
        """Before a batch of training, evaluation (``test``) or prediction."""
        self._each(f"on_{mode}_batch_begin", batch, logs)

    def batch_end(self, mode: str, batch: int, logs: Any) -> None:
        """After a batch of training, evaluation (``test``) or prediction."""
        self._each(f"on_{mode}_batch_end", batch, logs)

    def _each(self, method: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, method)(*args)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before each epoch."""
        self._each("on_epoch_begin", epoch, logs if logs is not None else {})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After each epoch."""
        self._each("on_epoch_end", epoch, logs if logs is not None else {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_") and hasattr(Callback, name):
            return lambda logs=None: self._each(name, logs if logs is not None else {})
        raise AttributeError(name)

    def __iter__(self) -> Any:
        return iter(self.callbacks)


def _watches(callback: Any) -> bool:
    """Whether a callback has something to do for each batch."""
    if type(callback) is BaseLogger or not isinstance(callback, Callback):
        return not isinstance(callback, BaseLogger)
    kind = type(callback)
    own = vars(callback)
    return any(getattr(kind, h) is not getattr(Callback, h) or h in own for h in _BATCH_HOOKS)


def configured(
    callbacks: Any,
    model: Any,
    batches: Any,
    epochs: int,
    verbose: int,
    validates: bool,
    training: bool = False,
) -> CallbackList:
    """The callbacks of a loop: those of the program, and for training a history behind them."""
    if isinstance(callbacks, CallbackList):
        return callbacks
    given = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    given = [callback for callback in given if callback is not None]
    if training:
        model.history = History()
        given.append(model.history)
    found = CallbackList(given)
    names = model.metrics_names if model._compiled is not None else []
    found.set_model(model)
    found.set_params(
        {
            "batch_size": getattr(batches, "batch_size", None),
            "epochs": epochs,
            "steps": batches.steps,
            "samples": batches.samples if batches.samples is not None else batches.steps,
            "verbose": verbose,
            "do_validation": validates,
            "metrics": [*names, *[f"val_{name}" for name in names]] if validates else list(names),
        }
    )
    return found
