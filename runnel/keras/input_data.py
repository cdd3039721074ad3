"""Data as programs give them, as arrays in the order in which a step is fed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.shapes import compatible_dims, format_dims


def as_array(value: Any) -> Any:
    """Data as something that has a shape and can be sliced: arrays, and what is like them."""
    if hasattr(value, "toarray"):  # a sparse matrix of SciPy
        return value.toarray()
    if type(value).__module__.partition(".")[0] == "pandas":
        return np.asarray(value)
    if hasattr(value, "shape") and hasattr(value, "__getitem__"):
        return value
    return np.asarray(value)


def listed(data: Any, names: list[str], what: str) -> list[Any]:
    """Data as a list, one for each name: of a list, a dict by name, or a single array."""
    if data is None:
        return [None] * len(names)
    if isinstance(data, Mapping):
        missing = [name for name in names if name not in data]
        if missing:
            raise ValueError(
                f'No data provided for "{missing[0]}". Need data for each key in: {names}'
            )
        return [as_array(data[name]) for name in names]
    if isinstance(data, list | tuple) and _is_a_list_of_arrays(data, names):
        found = [as_array(one) for one in data]
    else:
        found = [as_array(data)]
    if len(found) != len(names):
        raise ValueError(
            f"Error when checking model {what}: the list of Numpy arrays that you are passing to "
            f"your model is not the size the model expected. Expected to see {len(names)} "
            f"array(s), for {names}, but instead got {len(found)}, of shapes "
            f"{[getattr(one, 'shape', None) for one in found]}"
        )
    return found


def _is_a_list_of_arrays(data: Any, names: list[str]) -> bool:
    if len(data) == len(names) and len(names) != 1:
        return True
    return any(hasattr(one, "shape") or hasattr(one, "__array__") for one in data) or (
        len(names) == 1 and len(data) == 1 and isinstance(data[0], list | tuple)
    )


def shaped(array: Any, tensor: Any, name: str, what: str) -> Any:
    """``array`` in the type of ``tensor``, with the shape that it needs, or an error."""
    dims = tensor.dims
    if len(array.shape) == 1 and (dims is None or len(dims) != 1):
        array = np.expand_dims(np.asarray(array), 1)
    if dims is not None and not compatible_dims((None, *array.shape[1:]), (None, *dims[1:])):
        raise ValueError(
            f"Error when checking {what}: expected {name} to have shape "
            f"{format_dims(dims[1:])} but got array with shape {format_dims(array.shape[1:])}"
        )
    if isinstance(array, np.ndarray):
        wanted = tensor.dtype.base_dtype.np_dtype
        # Once here, not for each batch; strings are the feed's business.
        if array.dtype != wanted and wanted.kind in "biufc" and array.dtype.kind in "biufc":
            array = array.astype(wanted)
    return array


def weights_of_examples(
    target: Any, sample_weight: Any, class_weight: Any, mode: str | None, name: str
) -> Any:
    """The weight of each example (or time step): what the program gave, times its class's."""
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight)
        wanted = 2 if mode == "temporal" else 1
        if sample_weight.ndim != wanted:
            raise ValueError(
                f"Found a sample_weight array with shape {sample_weight.shape} for {name!r}. "
                + (
                    "In order to use timestep-wise sample weighting, you should pass a 2D "
                    "sample_weight array."
                    if mode == "temporal"
                    else "In order to use timestep-wise sample weights, you should specify "
                    'sample_weight_mode="temporal" in compile(). If you just mean to use '
                    "sample-wise weights, make sure your sample_weight array is 1D."
                )
            )
        if tuple(target.shape[:wanted]) != sample_weight.shape:
            raise ValueError(
                f"Found a sample_weight array with shape {sample_weight.shape} for an input with "
                f"shape {tuple(target.shape)}. sample_weight cannot be broadcast."
            )
    if not isinstance(class_weight, Mapping):
        return sample_weight
    if target.ndim > 2:
        raise ValueError("`class_weight` not supported for 3+ dimensional targets.")
    many = target.ndim == 2 and target.shape[1] > 1
    classes = np.argmax(target, axis=1) if many else np.reshape(target, -1)
    missing = {c for c in np.unique(classes).tolist() if c not in class_weight}
    if missing:
        raise ValueError(
            f"`class_weight` must contain all classes in the data. The classes {missing} exist in "
            "the data but not in `class_weight`."
        )
    found = np.asarray([class_weight[c] for c in classes.tolist()])
    return found if sample_weight is None else found * sample_weight


def require_same_length(arrays: list[Any], what: str) -> int:
    """The number of examples, or an error if arrays differ in it."""
    lengths = {int(a.shape[0]) for a in arrays if a is not None and len(a.shape)}
    if len(lengths) > 1:
        shapes = [tuple(a.shape) for a in arrays if a is not None]
        raise ValueError(
            f"All {what} should have the same number of samples. Got array shapes: {shapes}"
        )
    return lengths.pop() if lengths else 0


def check_targets(endpoints: list[Any], targets: list[Any]) -> None:
    """Explains a target whose shape does not fit its loss."""
    for endpoint, target in zip(endpoints, targets, strict=True):
        if endpoint.is_categorical() and target.shape[-1] == 1:
            raise ValueError(
                f"You are passing a target array of shape {target.shape} while using as loss "
                "`categorical_crossentropy`. `categorical_crossentropy` expects targets to be "
                "binary matrices (1s and 0s) of shape (samples, classes). Make them of the numbers "
                "of classes with tf.keras.utils.to_categorical(y), or use the loss "
                "`sparse_categorical_crossentropy`, which expects these numbers."
            )
        dims = endpoint.output.dims
        if not endpoint.needs_same_shape() or dims is None:
            continue
        pairs = zip(target.shape[1:], dims[1:], strict=False)
        if len(target.shape) != len(dims) or any(b is not None and a != b for a, b in pairs):
            raise ValueError(
                f"A target array with shape {target.shape} was passed for an output of shape "
                f"{format_dims(dims)} while using as loss `{endpoint.loss.name}`. This loss "
                "expects targets to have the same shape as the output."
            )


def prepared(
    model: Any, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None
) -> list[Any]:
    """What a step of ``model`` is fed: inputs, then (with a loss) targets and weights."""
    inputs = model._fed_inputs()
    names = [n for n, t in zip(model.input_names, model.inputs, strict=True) if t in inputs]
    xs = [
        shaped(array, tensor, name, "input")
        for array, tensor, name in zip(listed(x, names, "input"), inputs, names, strict=True)
    ]
    compiled = model._compiled
    if compiled is None or (y is None and not compiled.fed):
        require_same_length(xs, "input arrays (x)")
        return xs
    fed = compiled.fed
    own = [e.name for e in fed]
    if y is None:
        raise ValueError(
            f"The model was compiled with a loss for {own}, so it needs targets: pass y"
        )
    ys = [
        shaped(array, endpoint.target, endpoint.name, "target")
        for array, endpoint in zip(listed(y, own, "target"), fed, strict=True)
    ]
    every = [e.name for e in compiled.endpoints if e.trains]
    given = dict(zip(own, _for_each(sample_weight, own, "sample_weight"), strict=True))
    classes = dict(zip(own, _for_each(class_weight, own, "class_weight", True), strict=True))
    weights = [
        weights_of_examples(array, given[e.name], classes[e.name], e.weight_mode, e.name)
        for array, e in zip(ys, fed, strict=True)
    ]
    del every
    require_same_length(xs, "input arrays (x)")
    if require_same_length(xs, "input arrays (x)") != require_same_length(ys, "target arrays (y)"):
        raise ValueError(
            "Input arrays should have the same number of samples as target arrays. Found "
            f"{xs[0].shape[0]} input samples and {ys[0].shape[0]} target samples."
        )
    check_targets(fed, ys)
    for e, weight in zip(fed, weights, strict=True):
        if weight is not None and e.weight_mode is None:
            e.weight_mode = "samplewise"
    compiled.assemble([e.weight_mode is not None for e in compiled.endpoints])
    return [*xs, *ys, *_filled(fed, ys, weights)]


def _filled(fed: list[Any], ys: list[Any], weights: list[Any]) -> list[Any]:
    """The weights that are fed: 1 for outputs whose examples count, but were given none."""
    found = []
    for endpoint, target, weight in zip(fed, ys, weights, strict=True):
        if endpoint.weights is not None:
            rank = len(endpoint.weights.dims or (None,))
            kind = endpoint.weights.dtype.base_dtype.np_dtype
            full = np.ones(target.shape[:rank]) if weight is None else weight
            found.append(np.asarray(full, kind))
    return found


def _for_each(given: Any, names: list[str], what: str, by_class: bool = False) -> list[Any]:
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping) and not (by_class and not set(given) & set(names)):
        return [given.get(name) for name in names]
    if len(names) == 1:
        single = isinstance(given, list | tuple) and len(given) == 1
        inner = single and (given[0] is None or np.ndim(given[0]) > 0 or by_class)
        return [given[0] if inner else given]
    if not isinstance(given, list | tuple) or len(given) != len(names):
        raise ValueError(
            f"The model has {len(names)} outputs, so {what} must be a list of {len(names)}, or a "
            f"dict with the names {names}"
        )
    return list(given)


def has_tensors(data: Any) -> bool:
    """Whether a program gave tensors as data."""
    parts = data.values() if isinstance(data, Mapping) else data
    if isinstance(data, Tensor):
        return True
    return isinstance(data, list | tuple | Mapping) and any(isinstance(p, Tensor) for p in parts)


def split(arrays: list[Any], share: float) -> tuple[list[Any], list[Any]]:
    """The first examples, and the last ``share`` of them."""
    at = int(int(arrays[0].shape[0]) * (1.0 - share))
    return [a[:at] for a in arrays], [a[at:] for a in arrays]
