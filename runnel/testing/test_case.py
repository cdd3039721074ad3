"""``tf.test.TestCase``: unittest with a graph for each test, sessions and array assertions."""

from __future__ import annotations

import random
import re
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.device import canonical_device
from runnel.graph.graph import Graph, reset_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.random_seed import set_random_seed
from runnel.runtime.session import Session

DEFAULT_SEED = 87654321


class TestCase(unittest.TestCase):
    """A test with a fresh graph, fixed seeds, sessions and assertions on arrays.

    Example:
        >>> class SquareTest(tf.test.TestCase):
        ...     def testSquare(self):
        ...         with self.test_session():
        ...             self.assertAllEqual(tf.square([2, 3]).eval(), [4, 9])
    """

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803 (unittest's name)
        super().__init__(methodName)
        self._temp_dir: str | None = None
        self._cached_session: Session | None = None
        self._graph_context: AbstractContextManager[Graph] | None = None

    def setUp(self) -> None:
        """A fresh default graph and fixed seeds."""
        super().setUp()
        random.seed(DEFAULT_SEED)
        np.random.seed(DEFAULT_SEED % 2**32)
        try:
            reset_default_graph()
        except AssertionError:  # inside someone's as_default block
            self._graph_context = Graph().as_default()
            self._graph_context.__enter__()
        set_random_seed(DEFAULT_SEED)

    def tearDown(self) -> None:
        """Closes the session that ``cached_session`` made."""
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None
        if self._graph_context is not None:
            self._graph_context.__exit__(None, None, None)
            self._graph_context = None
        super().tearDown()

    # Sessions -------------------------------------------------------------------------------

    @contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """A new default session for the block."""
        with Session(graph=graph, config=config) as sess:
            yield sess

    @contextmanager
    def cached_session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """The one session of this test, made when first asked for."""
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=config)
        sess = self._cached_session
        if graph is not None and sess.graph is not graph:
            raise ValueError("The graph used to get the cached session is different from before.")
        with sess.graph.as_default(), sess.as_default():
            yield sess

    def test_session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> AbstractContextManager[Session]:
        """``cached_session`` without a graph, a new session with one."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")  # loaders take every method that begins with "test"
        chosen = self.cached_session if graph is None else self.session
        return chosen(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors: Any) -> Any:
        """The values of ``tensors`` in the default session (or a new one)."""
        from runnel.graph.default_session import get_default_session

        sess = get_default_session()
        if sess is not None:
            return sess.run(tensors)
        with self.test_session() as sess:
            return sess.run(tensors)

    def get_temp_dir(self) -> str:
        """A directory of this test's own, removed at its end."""
        if self._temp_dir is None:
            holder = tempfile.TemporaryDirectory()
            self.addCleanup(holder.cleanup)
            self._temp_dir = holder.name
        return self._temp_dir

    def checkedThread(  # noqa: N802
        self, target: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> CheckedThread:
        """A thread whose exceptions fail the test when it is joined."""
        return CheckedThread(self, target, args, kwargs or {})

    # Assertions on arrays -------------------------------------------------------------------

    def _array(self, value: Any) -> np.ndarray:
        if isinstance(value, Tensor | IndexedSlices) or hasattr(value, "_as_graph_element"):
            value = self.evaluate(value)
        return np.asarray(value)

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Arrays (or nested structures of arrays) agree within tolerances."""
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
        # NumPy's comparisons need a type wider than the 16-bit ones.
        a, b = (
            v.astype(np.float64) if v.dtype.itemsize <= 2 and v.dtype.kind in "fV" else v
            for v in (a, b)
        )
        if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return
        difference = np.abs(a - b)
        bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        raise self.failureException(
            f"Not close{where} (rtol={rtol}, atol={atol}): {int(bad.sum())} of {bad.size} "
            f"elements, "
            f"largest difference {np.nanmax(difference)}; first at {np.argwhere(bad)[0].tolist()}: "
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

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:  # noqa: N802
        """Arrays differ by more than the tolerances."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise self.failureException("The two values are close at all elements")

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Arrays have the same shape and elements (NaN equals NaN)."""
        x, y = self._array(a), self._array(b)
        if x.dtype == object or y.dtype == object or x.dtype.kind in "SU" or y.dtype.kind in "SU":
            x, y = _as_bytes(x), _as_bytes(y)
        self.assertEqual(
            x.shape, y.shape, f"Shape mismatch: {x.shape} against {y.shape}. {msg or ''}"
        )
        same = x == y
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            same = same | (np.isnan(x) & np.isnan(y))
        if np.all(same):
            return
        bad = ~np.asarray(same)
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

    def _all_satisfy(self, a: Any, holds: Callable[[np.ndarray], Any], what: str) -> None:
        values = self._array(a)
        bad = ~np.asarray(holds(values))
        if bad.any():
            raise self.failureException(
                f"{int(bad.sum())} of {bad.size} elements are not {what}; first at "
                f"{np.argwhere(bad)[0].tolist()}: {values[bad][0]!r}"
            )

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all_satisfy(a, lambda v: v > comparison_target, f"greater than {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all_satisfy(a, lambda v: v < comparison_target, f"less than {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all_satisfy(a, lambda v: v >= comparison_target, f"at least {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all_satisfy(a, lambda v: v <= comparison_target, f"at most {comparison_target}")

    def assertAllInRange(  # noqa: N802
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element lies between the bounds."""

        def holds(v: np.ndarray) -> np.ndarray:
            above = v > lower_bound if open_lower_bound else v >= lower_bound
            below = v < upper_bound if open_upper_bound else v <= upper_bound
            return above & below

        self._all_satisfy(target, holds, f"between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        self._all_satisfy(target, lambda v: np.isin(v, list(expected_set)), f"in {expected_set}")

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Two numbers differ by at most ``err``."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}. {msg or ''}")

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:  # noqa: N802
        """Two lists of numbers differ by at most ``err`` at each place."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:  # noqa: N802
        """The norm of the difference is below ``err``."""
        self.assertTrue(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)) < err, msg)

    def assertShapeEqual(
        self, np_array: np.ndarray, tf_tensor: Tensor, msg: str | None = None
    ) -> None:  # noqa: N802
        """The array has the static shape of the tensor."""
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:  # noqa: N802
        """Two device names mean the same."""
        self.assertEqual(canonical_device(device1 or ""), canonical_device(device2 or ""), msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:  # noqa: N802
        """A string begins with another."""
        self.assertTrue(
            actual.startswith(expected_start),
            msg or f"{actual!r} does not start with {expected_start!r}",
        )

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        self.assertGreater(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:  # noqa: N802
        self.assertEqual(len(container), expected_len, msg)

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any) -> None:  # noqa: N802
        """A protocol buffer equals another, or one in text form."""
        from google.protobuf import text_format

        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(expected, message)

    # Assertions on errors -------------------------------------------------------------------

    @contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an exception that matches a regular expression or a predicate.

        For an OpError the text searched includes the names of the failed operation.
        """
        matches: Callable[[Any], bool]
        if callable(expected_err_re_or_predicate):
            matches = expected_err_re_or_predicate
        else:

            def matches(error: Any) -> bool:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op: Operation | None = error.op if isinstance(error, errors.OpError) else None
                if op is not None:
                    text += f"\nCaused by op: {op.name}"
                return re.search(expected_err_re_or_predicate, text) is not None

        try:
            yield
        except exception_type as error:
            if not matches(error):
                raise AssertionError(
                    f"Exception of type {type(error).__name__} does not match: {error}"
                ) from error
            return
        raise self.failureException(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: Any
    ) -> AbstractContextManager[None]:  # noqa: N802
        """The block raises an OpError that matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _as_bytes(array: np.ndarray) -> np.ndarray:
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    for i, item in enumerate(array.reshape(-1).tolist()):
        flat[i] = item.encode() if isinstance(item, str) else item
    return out


class CheckedThread:
    """A thread that reports its exception to the test that joins it."""

    def __init__(
        self, testcase: TestCase, target: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> None:
        self._testcase = testcase
        self._call = (target, args, kwargs)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        target, args, kwargs = self._call
        try:
            target(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (handed to the joining thread)
            self._error = error

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self, timeout: float = 60.0) -> None:
        """Waits for the thread; fails the test if it raised or did not end in time."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._testcase.fail(f"A checked thread did not end within {timeout} s")
        if self._error is not None:
            raise self._testcase.failureException(
                f"Error in checked thread: {self._error}"
            ) from self._error

    def is_alive(self) -> bool:
        return self._thread.is_alive()
