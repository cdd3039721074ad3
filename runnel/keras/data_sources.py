"""Batches of what a program gives to ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from runnel.data.dataset import Dataset
from runnel.data.iterators import Iterator
from runnel.graph.operation import Tensor
from runnel.keras.backend_state import get_session
from runnel.keras.batches import (
    ArrayBatches,
    Batches,
    GeneratorBatches,
    RepeatedBatches,
    TensorBatches,
)
from runnel.keras.input_data import (
    has_tensors,
    listed,
    prepared,
    require_same_length,
    shaped,
    split,
)
from runnel.keras.sequence import Sequence


class Options(NamedTuple):
    """How batches are made."""

    batch_size: int | None
    max_queue_size: int
    workers: int
    use_multiprocessing: bool


def _is_generator(x: Any) -> bool:
    if isinstance(x, Sequence):
        return True
    plain = isinstance(x, list | tuple | Mapping | np.ndarray | Tensor | Dataset | Iterator)
    return not plain and hasattr(x, "__next__")


def _kind(x: Any) -> str:
    if isinstance(x, Dataset):
        return "dataset"
    if isinstance(x, Iterator):
        return "iterator"
    if _is_generator(x):
        return "generator"
    return "tensors" if has_tensors(x) else "arrays"


def _parts(item: Any, what: str) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights of what a generator or dataset gives."""
    if not isinstance(item, tuple):
        return item, None, None
    if len(item) not in (1, 2, 3):
        raise ValueError(
            f"Output of {what} should be a tuple `(x, y, sample_weight)` or `(x, y)`. Found: "
            f"{len(item)} parts"
        )
    x, y, weight = (*item, None, None)[:3]
    return x, y, weight


def evaluated(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values in which tensors are the arrays that they are in this step."""
    if not any(has_tensors(value) for value in values):
        return values
    kept = [value if has_tensors(value) else None for value in values]
    found = get_session().run([v for v in kept if v is not None])
    remaining = iter(found)
    return tuple(next(remaining) if k is not None else v for k, v in zip(kept, values, strict=True))


def only_inputs(model: Any, x: Any) -> list[Any]:
    """What the step that predicts is fed."""
    inputs = model._fed_inputs()
    names = [n for n, t in zip(model.input_names, model.inputs, strict=True) if t in inputs]
    arrays = listed(x, names, "input")
    found = [shaped(a, t, n, "input") for a, t, n in zip(arrays, inputs, names, strict=True)]
    require_same_length(found, "input arrays (x)")
    return found


def _from_source(
    model: Any,
    x: Any,
    options: Options,
    steps: int | None,
    class_weight: Any = None,
    shuffle: Any = False,
    predicting: bool = False,
) -> Batches:
    """Batches of a dataset, an iterator or a generator."""
    kind = _kind(x)

    def prepare(item: Any) -> list[Any]:
        inputs, targets, weights = _parts(item, f"a {kind}")
        if predicting:
            return only_inputs(model, inputs)
        return prepared(model, inputs, targets, weights, class_weight)

    if options.batch_size is not None and kind != "generator":
        raise ValueError(
            f"The `batch_size` argument must not be specified for a {kind}: its elements are the "
            "batches"
        )
    if kind == "generator":
        first = None
        if isinstance(x, Sequence) or model.outputs:
            source = x
            if not model.outputs:
                first = x[0]
        else:
            iterator = iter(x)
            first = next(iterator)
            source = _put_back(first, iterator)
        if not predicting:
            model._ready(None if first is None else _parts(first, "a generator")[0])
        else:
            model._ready(None if first is None else _parts(first, "a generator")[0], False)
        if first is None and steps is None and not isinstance(x, Sequence):
            if not predicting and not hasattr(x, "__len__"):
                steps = None
        return GeneratorBatches(
            *(source, prepare, steps, bool(shuffle)), options.max_queue_size, options.workers
        )
    if kind == "dataset":
        iterator_of = x.make_initializable_iterator()
        tensors, restart = iterator_of.get_next(), iterator_of.initializer
    else:
        if steps is None:
            raise ValueError(
                "When using iterators as input to a model, you should specify the "
                "`steps_per_epoch` (or `steps`) argument."
            )
        tensors, restart = x.get_next(), None
    model._ready(_parts(tensors, f"a {kind}")[0], not predicting)
    return TensorBatches(tensors, prepare, steps, restart, kind)


def _put_back(first: Any, rest: Any) -> Any:
    yield first
    yield from rest


def _from_tensors(
    model: Any, x: Any, y: Any, weights: Any, steps: int | None, name: str, predicting: bool = False
) -> Batches:
    if steps is None:
        raise ValueError(
            f"When feeding symbolic tensors to a model, you should specify the `{name}` argument."
        )
    model._ready(x, not predicting)
    given = {"x": x, "y": y, "weights": weights}
    symbolic = {key: value for key, value in given.items() if has_tensors(value)}

    def prepare(values: dict[str, Any]) -> list[Any]:
        whole = {**given, **values}
        if predicting:
            return only_inputs(model, whole["x"])
        return prepared(model, whole["x"], whole["y"], whole["weights"])

    return TensorBatches(symbolic, prepare, steps, None, "input")


def for_training(
    model: Any,
    x: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    options: Options,
    shuffle: Any,
    steps: int | None,
    validation_split: float = 0.0,
) -> tuple[Batches, Batches | None]:
    """The batches to train on, and those held out by ``validation_split``."""
    kind = _kind(x)
    if kind != "arrays" and validation_split:
        raise ValueError(
            f"`validation_split` is for arrays, but x is a {kind}: give validation_data"
        )
    if kind in ("dataset", "iterator", "generator"):
        if y is not None:
            raise ValueError(
                f"You passed a {kind} as x, whose elements are pairs of inputs and targets: leave "
                "out y"
            )
        return _from_source(model, x, options, steps, class_weight, shuffle), None
    if kind == "tensors" or has_tensors(y):
        return _from_tensors(model, x, y, sample_weight, steps, "steps_per_epoch"), None
    if x is not None:
        model._ready(x)
    elif not model._require_compiled().model._fed_inputs() and steps is None:
        raise ValueError("A model without fed inputs needs `steps_per_epoch`")
    arrays = prepared(model, x, y, sample_weight, class_weight)
    held_out: Batches | None = None
    size = options.batch_size or 32
    if validation_split:
        if not 0.0 < validation_split < 1.0:
            raise ValueError(f"validation_split must be between 0 and 1, not {validation_split}")
        arrays, last = split(arrays, validation_split)
        held_out = ArrayBatches(last, size, False)
    if steps is not None:
        return RepeatedBatches(arrays, steps), held_out
    return ArrayBatches(arrays, size, shuffle), held_out


def for_validation(model: Any, data: Any, options: Options, steps: int | None) -> Batches:
    """The batches of ``validation_data``."""
    if _kind(data) in ("dataset", "iterator", "generator"):
        return _from_source(model, data, options._replace(batch_size=None), steps)
    if not isinstance(data, list | tuple) or len(data) not in (2, 3):
        raise ValueError(
            "When passing a `validation_data` argument, it must contain either 2 items (x_val, "
            "y_val), or 3 items (x_val, y_val, val_sample_weights), or alternatively it could be a "
            f"dataset or a dataset or a dataset iterator. However we received {type(data)}"
        )
    x, y, weights = (*data, None)[:3]
    return for_testing(model, x, y, weights, options, steps)


def for_testing(
    model: Any, x: Any, y: Any, sample_weight: Any, options: Options, steps: int | None
) -> Batches:
    """The batches to evaluate."""
    kind = _kind(x)
    if kind in ("dataset", "iterator", "generator"):
        return _from_source(model, x, options, steps)
    if kind == "tensors" or has_tensors(y):
        return _from_tensors(model, x, y, sample_weight, steps, "steps")
    model._ready(x)
    arrays = prepared(model, x, y, sample_weight)
    if steps is not None:
        return RepeatedBatches(arrays, steps)
    return ArrayBatches(arrays, options.batch_size or 32, False)


def for_prediction(model: Any, x: Any, options: Options, steps: int | None) -> Batches:
    """The batches to predict of."""
    kind = _kind(x)
    if kind in ("dataset", "iterator", "generator"):
        return _from_source(model, x, options, steps, predicting=True)
    if kind == "tensors":
        return _from_tensors(model, x, None, None, steps, "steps", predicting=True)
    model._ready(x, compiled=False)
    arrays = only_inputs(model, x)
    if steps is not None:
        return RepeatedBatches(arrays, steps)
    return ArrayBatches(arrays, options.batch_size or 32, False)
