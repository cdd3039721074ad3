"""Comparing symbolic gradients with finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.autodiff.gradients import gradients
from runnel.graph.default_session import get_default_session
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.shapes import as_dims, format_dims, is_fully_defined, num_elements


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> Any:
    """The Jacobian of ``y`` with respect to ``x``, as (symbolic, by finite differences).

    Each is an array of (elements of x) by (elements of y). ``x`` may be a list, with lists of
    shapes and initial values; the result is then a list of pairs. ``y_shape`` may be any shape of
    as many elements as ``y`` has. Needs a default session.

    Example:
        >>> with tf.Session():
        ...     theory, numeric = tf.test.compute_gradient(x, [2, 3], y, [2])
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: `with tf.Session():`")
    if init_targets is not None:
        for target in init_targets if isinstance(init_targets, list | tuple) else [init_targets]:
            session.run(target)
    extra = dict(extra_feed_dict or {})
    if not isinstance(x, list):
        return _one(session, x, x_shape, y, y_shape, x_init_value, delta, extra)
    values = x_init_value or [None] * len(x)
    values = [_initial(t, s, v) for t, s, v in zip(x, x_shape, values, strict=True)]
    results = []
    for i, (tensor, shape) in enumerate(zip(x, x_shape, strict=True)):
        others = {t: v for j, (t, v) in enumerate(zip(x, values, strict=True)) if j != i}
        results.append(_one(session, tensor, shape, y, y_shape, values[i], delta, extra | others))
    return results


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> float:
    """The largest difference between the symbolic and the numeric Jacobian; NaN if one is NaN."""
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = found if isinstance(found, list) else [found]
    error = 0.0
    for theory, numeric in pairs:
        if theory.size or numeric.size:
            error = float(np.maximum(error, np.fabs(theory - numeric).max()))  # a NaN stays one
    return error


def _initial(x: Tensor, shape: Any, value: Any) -> np.ndarray:
    dtype = x.dtype.base_dtype.np_dtype
    if value is not None:
        return np.array(value, dtype)
    rng = np.random.default_rng(17)
    drawn = rng.uniform(-1, 1, shape)
    if x.dtype.is_complex:
        drawn = drawn + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(drawn).astype(dtype)


def _one(
    session: Any,
    x: Tensor,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    value: Any,
    delta: float,
    extra: Any,
) -> tuple[np.ndarray, np.ndarray]:
    dims = _dims(x_shape)
    value = _initial(x, dims, value)
    if value.shape != dims:
        raise ValueError(f"x_init_value has shape {value.shape}, but x_shape is {dims}")
    y_dims = _dims(y_shape)
    # Often y_shape only tells how many elements there are: [1] for a scalar.
    if is_fully_defined(y.dims) and num_elements(y.dims) == num_elements(y_dims):
        y_dims = _dims(y.dims)
    theory = _symbolic(session, x, value, y, y_dims, extra)
    return theory, _numeric(session, x, value, y, y_dims, delta, extra)


def _dims(shape: Any) -> tuple[int, ...]:
    """A shape that is given in any way (a list, an array, a TensorShape), as integers."""
    dims = as_dims(shape.tolist() if isinstance(shape, np.ndarray) else shape)
    if not is_fully_defined(dims):
        raise ValueError(f"compute_gradient needs known shapes, not {format_dims(dims)}")
    return tuple(int(size) for size in dims or () if size is not None)


def _parts(array: np.ndarray) -> np.ndarray:
    """A complex array as interleaved real and imaginary parts."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype)
    return flat


def _symbolic(
    session: Any, x: Tensor, value: np.ndarray, y: Tensor, y_shape: tuple[int, ...], extra: Any
) -> np.ndarray:
    from runnel.ops.constants import placeholder

    with y.graph.as_default():
        dy = placeholder(y.dtype.base_dtype, y_shape)
        grad = gradients(y, x, grad_ys=dy)[0]
    if grad is None:
        raise ValueError(f"{y.name} does not depend on {x.name}: there is no gradient to check")
    seed = np.zeros(y_shape, y.dtype.base_dtype.np_dtype)
    seeds = _parts(seed)
    columns = []
    for i in range(seeds.size):
        seeds[i] = 1
        result = session.run(grad, {x: value, dy: seed.reshape(y_shape), **extra})
        seeds[i] = 0
        if isinstance(grad, IndexedSlices):
            dense = np.zeros(value.shape, value.dtype)
            np.add.at(dense, result.indices, result.values)
            result = dense
        columns.append(_parts(np.asarray(result)).astype(np.float64))
    rows = _parts(value).size
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


def _numeric(
    session: Any,
    x: Tensor,
    value: np.ndarray,
    y: Tensor,
    y_shape: tuple[int, ...],
    delta: float,
    extra: Any,
) -> np.ndarray:
    point = value.copy()
    parts = _parts(point)
    rows = []
    for i in range(parts.size):
        sides = []
        original = parts[i]
        for step in (-delta, delta):
            parts[i] = original + parts.dtype.type(step)
            shifted = point if parts.base is not None else parts.reshape(point.shape)
            sides.append(
                _parts(np.asarray(session.run(y, {x: shifted, **extra}))).astype(np.float64)
            )
        parts[i] = original
        rows.append((sides[1] - sides[0]) / (2 * delta))
    columns = int(np.prod(y_shape)) * (2 if y.dtype.is_complex else 1)
    return np.stack(rows) if rows else np.zeros((0, columns))
