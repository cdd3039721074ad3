"""Assertions on arrays: each takes arrays, nested lists, or tensors, which it evaluates."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.dtypes import as_dtype
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor


class ArrayAssertions(unittest.TestCase):
    """The part of ``tf.test.TestCase`` that compares arrays."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of ``tensors`` in a session."""
        raise NotImplementedError

    def _array(self, value: Any) -> np.ndarray:
        if isinstance(value, Tensor | IndexedSlices) or hasattr(value, "_as_graph_element"):
            value = self.evaluate(value)
        return np.asarray(value)

    # Close ----------------------------------------------------------------------------------

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Arrays (or nested structures of arrays) agree within tolerances; NaN equals NaN."""
        self._all_close(a, b, rtol, atol, msg, "")

    def _all_close(self, a: Any, b: Any, rtol: float, atol: float, msg: Any, path: str) -> None:
        if hasattr(a, "_asdict"):
            a = a._asdict()
        if hasattr(b, "_asdict"):
            b = b._asdict()
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertTrue(isinstance(a, dict) and isinstance(b, dict), "only one is a dict")
            self.assertCountEqual(a.keys(), b.keys(), f"different keys at {path or 'the top'}")
            for key in a:
                self._all_close(a[key], b[key], rtol, atol, msg, f"{path}[{key!r}]")
            return
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            try:
                left, right = np.asarray(a), np.asarray(b)
                plain = left.dtype != object and right.dtype != object
            except (ValueError, NotImplementedError):
                plain = False
            if not plain:
                self.assertEqual(len(a), len(b), f"different lengths at {path or 'the top'}")
                for i, (x, y) in enumerate(zip(a, b, strict=True)):
                    self._all_close(x, y, rtol, atol, msg, f"{path}[{i}]")
                return
        self._arrays_close(self._array(a), self._array(b), rtol, atol, msg, path)

    def _arrays_close(
        self, a: np.ndarray, b: np.ndarray, rtol: float, atol: float, msg: Any, path: str
    ) -> None:
        where = f" at {path}" if path else ""
        self.assertEqual(
            a.shape, b.shape, f"Shape mismatch{where}: {a.shape} against {b.shape}. {msg or ''}"
        )
        a, b = _comparable(a), _comparable(b)
        bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        if not bad.any():
            return
        with np.errstate(all="ignore"):
            difference = np.abs(a[bad] - b[bad])
        finite = difference[np.isfinite(difference)]
        largest = f"largest difference {finite.max()}; " if finite.size else ""
        raise self.failureException(
            f"Not close{where} (rtol={rtol}, atol={atol}): {int(bad.sum())} of {bad.size} "
            f"elements; {largest}first at {np.argwhere(bad)[0].tolist()}: "
            f"{a[bad][0]} against {b[bad][0]}. {msg or ''}"
        )

    def assertAllCloseAccordingToType(  # noqa: N802
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Like ``assertAllClose``, with tolerances for the narrower of the two types."""
        x, y = self._array(a), self._array(b)
        names = {x.dtype.name, y.dtype.name}
        if names & {"float32", "complex64"}:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if "float16" in names:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        if "bfloat16" in names:
            rtol, atol = max(rtol, bfloat16_rtol), max(atol, bfloat16_atol)
        self._arrays_close(x, y, rtol, atol, msg, "")

    def assertNotAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Arrays differ somewhere by more than the tolerances."""
        try:
            self.assertAllClose(a, b, rtol=rtol, atol=atol)
        except AssertionError:
            return
        raise self.failureException(f"The two values are close at all elements. {msg or ''}")

    # Equal ----------------------------------------------------------------------------------

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Arrays have the same shape and elements (NaN equals NaN)."""
        x, y = self._array(a), self._array(b)
        if x.dtype == object or y.dtype == object or x.dtype.kind in "SU" or y.dtype.kind in "SU":
            x, y = _as_bytes(x), _as_bytes(y)
        self.assertEqual(
            x.shape, y.shape, f"Shape mismatch: {x.shape} against {y.shape}. {msg or ''}"
        )
        same = np.asarray(x == y)
        if x.dtype.kind in "fcV" and y.dtype.kind in "fcV":
            same = same | (np.isnan(x) & np.isnan(y))
        if np.all(same):
            return
        bad = ~same
        raise self.failureException(
            f"Not equal: {int(bad.sum())} of {bad.size} elements; first at "
            f"{np.argwhere(bad)[0].tolist()}: {x[bad][0]!r} against {y[bad][0]!r}. {msg or ''}"
        )

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise self.failureException(f"The two values are equal at all elements. {msg or ''}")

    # Every element --------------------------------------------------------------------------

    def _all_satisfy(self, a: Any, holds: Callable[[np.ndarray], Any], what: str) -> None:
        values = self._array(a)
        bad = ~np.asarray(holds(values))
        if bad.any():
            raise self.failureException(
                f"{int(bad.sum())} of {bad.size} elements are not {what}; first at "
                f"{np.argwhere(bad)[0].tolist()}: {values[bad][0]!r}"
            )

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Every element is greater than the target."""
        self._all_satisfy(a, lambda v: v > comparison_target, f"greater than {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Every element is less than the target."""
        self._all_satisfy(a, lambda v: v < comparison_target, f"less than {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Every element is at least the target."""
        self._all_satisfy(a, lambda v: v >= comparison_target, f"at least {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Every element is at most the target."""
        self._all_satisfy(a, lambda v: v <= comparison_target, f"at most {comparison_target}")

    def assertAllInRange(  # noqa: N802
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element lies between the bounds; an open bound is not allowed itself."""

        def holds(v: np.ndarray) -> np.ndarray:
            above = v > lower_bound if open_lower_bound else v >= lower_bound
            below = v < upper_bound if open_upper_bound else v <= upper_bound
            return above & below

        self._all_satisfy(target, holds, f"between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        """Every element is one of ``expected_set``."""
        self._all_satisfy(target, lambda v: np.isin(v, list(expected_set)), f"in {expected_set}")

    # Numbers, types and shapes --------------------------------------------------------------

    def assertNear(  # noqa: N802
        self, f1: float, f2: float, err: float, msg: str | None = None
    ) -> None:
        """Two numbers differ by at most ``err``."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}. {msg or ''}")

    def assertArrayNear(  # noqa: N802
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Two lists of numbers differ by at most ``err`` at each place."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(  # noqa: N802
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """The norm of the difference is below ``err``."""
        norm = np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2))
        self.assertTrue(norm < err, msg or f"the norm of the difference is {norm}, not below {err}")

    def assertShapeEqual(  # noqa: N802
        self, input_a: Any, input_b: Any, msg: str | None = None
    ) -> None:
        """Two arrays or tensors have the same (static) shape."""
        shapes = [
            v.get_shape().as_list() if isinstance(v, Tensor) else list(np.shape(v))
            for v in (input_a, input_b)
        ]
        self.assertEqual(shapes[0], shapes[1], msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        """An array or tensor has the element type."""
        dtype = target.dtype if hasattr(target, "dtype") else self._array(target).dtype
        self.assertIs(as_dtype(dtype).base_dtype, as_dtype(expected_dtype).base_dtype)


def _comparable(array: np.ndarray) -> np.ndarray:
    """``array`` in a type whose differences NumPy can take and compare."""
    narrow = array.dtype.itemsize <= 2 and array.dtype.kind in "fV"
    return array.astype(np.float64) if narrow or array.dtype.kind == "b" else array


def _as_bytes(array: np.ndarray) -> np.ndarray:
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    for i, item in enumerate(array.reshape(-1).tolist()):
        flat[i] = item.encode() if isinstance(item, str) else item
    return out
