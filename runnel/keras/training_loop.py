"""The loops of ``fit``, ``evaluate`` and ``predict`` over batches, whatever these come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.keras.batches import Batches
from runnel.keras.callback import CallbackList, ProgbarLogger, configured


def train(
    model: Any,
    batches: Batches,
    epochs: int,
    initial_epoch: int,
    callbacks: Any,
    verbose: int,
    validation: Batches | None = None,
    validation_freq: Any = 1,
) -> Any:
    """Trains for epochs; returns the history of losses and metrics."""
    step = model._compiled.step("train")
    validates = validation is not None
    called = configured(callbacks, model, batches, epochs, verbose, validates, training=True)
    bar = ProgbarLogger.for_loop(model, batches, called.params, verbose)
    model.stop_training = False
    called.on_train_begin()
    bar.on_train_begin()
    names = model.metrics_names
    try:
        for epoch in range(initial_epoch, epochs):
            if model.stop_training:
                break
            model.reset_metrics()
            logs: dict[str, Any] = {}
            called.on_epoch_begin(epoch, logs)
            bar.on_epoch_begin(epoch, logs)
            results = _epoch(model, batches, step, called, bar, "train", names)
            logs = dict(zip(names, results, strict=True))
            if validation is not None and _validates(validation_freq, epoch):
                if not model.stop_training:
                    found = test(model, validation, called, 0)
                    logs.update({f"val_{n}": v for n, v in zip(names, found, strict=True)})
            called.on_epoch_end(epoch, logs)
            bar.on_epoch_end(epoch, logs)
            if getattr(batches, "ended", False):
                model.stop_training = True
    finally:
        batches.close()
        if validation is not None:
            validation.close()
    called.on_train_end()
    return model.history


def _validates(frequency: Any, epoch: int) -> bool:
    if isinstance(frequency, int):
        if frequency < 1:
            raise ValueError("`validation_freq` can not be less than 1.")
        return (epoch + 1) % frequency == 0
    return epoch + 1 in frequency


def test(model: Any, batches: Batches, called: CallbackList | None, verbose: int) -> list[Any]:
    """The loss and the metrics over all batches."""
    step = model._compiled.step("test")
    own = called or configured(None, model, batches, 1, verbose, False)
    model.reset_metrics()
    own.on_test_begin()
    bar = ProgbarLogger.for_loop(
        model, batches, {"epochs": 1, "metrics": model.metrics_names}, verbose
    )
    bar.on_train_begin()
    bar.on_epoch_begin(0, {})
    results = _epoch(model, batches, step, own, bar, "test", model.metrics_names)
    bar.on_epoch_end(0, dict(zip(model.metrics_names, results, strict=True)))
    own.on_test_end()
    return results


def _epoch(
    model: Any, batches: Batches, step: Any, called: CallbackList, bar: Any, mode: str, names: Any
) -> list[Any]:
    """One epoch: the mean loss, and the metrics after the last batch."""
    watched = called.watches_batches or bar.verbose
    total, weights = 0.0, 0
    values: list[Any] = []
    number = 0
    for number, (fed, size) in enumerate(batches.epoch()):
        if watched:
            logs: dict[str, Any] = {"batch": number, "size": size}
            called.batch_begin(mode, number, logs)
            bar.on_batch_begin(number, logs)
        values = step(fed)
        weight = batches.weight(size)
        total += float(values[0]) * weight
        weights += weight
        if watched:
            logs.update(zip(names, values, strict=True))
            called.batch_end(mode, number, logs)
            bar.on_batch_end(number, logs)
            if model.stop_training and mode == "train":
                break
    if not values:
        raise ValueError("There was no batch to train on or to evaluate: the data are empty")
    bar.learn_target(batches, number + 1)
    return [total / weights, *values[1:]]


def predicted(model: Any, batches: Batches, called: Any, verbose: int) -> Any:
    """The outputs of all batches, one after the other: an array, or a list for several outputs."""
    step = model._predict_step()
    own = configured(called, model, batches, 1, verbose, False)
    parts: list[list[Any]] = []
    own.on_predict_begin()
    bar = ProgbarLogger.for_loop(model, batches, {"epochs": 1, "metrics": []}, verbose)
    bar.on_train_begin()
    bar.on_epoch_begin(0, {})
    for number, (fed, size) in enumerate(batches.epoch()):
        logs: dict[str, Any] = {"batch": number, "size": size}
        own.batch_begin("predict", number, logs)
        bar.on_batch_begin(number, logs)
        parts.append(step(fed))
        own.batch_end("predict", number, logs)
        bar.on_batch_end(number, logs)
    bar.on_epoch_end(0, {})
    own.on_predict_end()
    if not parts:
        raise ValueError("There was no batch to predict of: the data are empty")
    whole = [
        outputs[0] if len(parts) == 1 else np.concatenate(outputs)
        for outputs in zip(*parts, strict=True)
    ]
    return whole[0] if len(whole) == 1 else whole
