"""Assertions on containers, strings, protocol buffers and exceptions."""

from __future__ import annotations

import re
import unittest
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from runnel.graph import errors
from runnel.graph.device import canonical_device


class PlainAssertions(unittest.TestCase):
    """The part of ``tf.test.TestCase`` that has nothing to do with arrays."""

    # Containers -----------------------------------------------------------------------------

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        """A container has no elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        """A container has elements."""
        self.assertGreater(len(container), 0, msg)

    def assertLen(  # noqa: N802
        self, container: Any, expected_len: int, msg: str | None = None
    ) -> None:
        """A container has that many elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertItemsEqual(  # noqa: N802
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: str | None = None
    ) -> None:
        """Two sequences have the same elements, each as often, in whatever order."""
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertSameElements(  # noqa: N802
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: str | None = None
    ) -> None:
        """Two sequences have the same elements, however often."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertContainsSubset(  # noqa: N802
        self, expected_subset: Iterable[Any], actual_set: Iterable[Any], msg: str | None = None
    ) -> None:
        """Every element of the first is in the second."""
        missing = set(expected_subset) - set(actual_set)
        self.assertFalse(missing, msg or f"missing: {missing}")

    def assertNoCommonElements(  # noqa: N802
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: str | None = None
    ) -> None:
        """No element of the first is in the second."""
        common = set(expected_seq) & set(actual_seq)
        self.assertFalse(common, msg or f"in both: {common}")

    def assertBetween(  # noqa: N802
        self, value: Any, minv: Any, maxv: Any, msg: str | None = None
    ) -> None:
        """A value lies between two others, which it may equal."""
        self.assertTrue(minv <= value <= maxv, msg or f"{value} is not in [{minv}, {maxv}]")

    def assertSequenceAlmostEqual(  # noqa: N802
        self,
        expected_seq: Sequence[Any],
        actual_seq: Sequence[Any],
        places: int | None = None,
        msg: str | None = None,
        delta: float | None = None,
    ) -> None:
        """Two sequences of numbers are almost equal at each place."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        almost_equal: Any = self.assertAlmostEqual  # whose overloads exclude each other
        for a, b in zip(expected_seq, actual_seq, strict=True):
            almost_equal(a, b, places=places, msg=msg, delta=delta)

    # Strings, devices and protocol buffers --------------------------------------------------

    def assertStartsWith(  # noqa: N802
        self, actual: str, expected_start: str, msg: str | None = None
    ) -> None:
        """A string begins with another."""
        self.assertTrue(
            actual.startswith(expected_start),
            msg or f"{actual!r} does not start with {expected_start!r}",
        )

    def assertEndsWith(  # noqa: N802
        self, actual: str, expected_end: str, msg: str | None = None
    ) -> None:
        """A string ends with another."""
        self.assertTrue(
            actual.endswith(expected_end), msg or f"{actual!r} does not end with {expected_end!r}"
        )

    def assertRegexMatch(  # noqa: N802
        self, actual_str: str, regexes: Collection[str], message: str | None = None
    ) -> None:
        """One of the regular expressions matches somewhere in the string."""
        self.assertTrue(
            any(re.search(regex, actual_str) for regex in regexes),
            message or f"{actual_str!r} matches none of {list(regexes)}",
        )

    def assertDeviceEqual(  # noqa: N802
        self, device1: Any, device2: Any, msg: str | None = None
    ) -> None:
        """Two device names mean the same."""
        self.assertEqual(canonical_device(device1 or ""), canonical_device(device2 or ""), msg)

    def assertProtoEquals(  # noqa: N802
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """A protocol buffer equals another, or one in text form."""
        from google.protobuf import text_format

        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(str(expected), str(message), msg)
        self.assertEqual(expected, message, msg)

    # Exceptions -----------------------------------------------------------------------------

    @contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an exception that matches a regular expression or a predicate.

        For an OpError the text searched includes the name of the failed operation.
        """
        matches: Callable[[Any], bool]
        if callable(expected_err_re_or_predicate):
            matches = expected_err_re_or_predicate
        else:

            def matches(error: Any) -> bool:
                return re.search(expected_err_re_or_predicate, _text(error)) is not None

        try:
            yield
        except exception_type as error:
            if not matches(error):
                raise self.failureException(
                    f"Exception of type {type(error).__name__} does not match: {error}"
                ) from error
            return
        raise self.failureException(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(  # noqa: N802
        self, expected_err_re_or_predicate: Any
    ) -> AbstractContextManager[None]:
        """The block raises an OpError that matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    @contextmanager
    def assertRaisesWithLiteralMatch(  # noqa: N802
        self, expected_exception: type[BaseException], expected_exception_message: str
    ) -> Iterator[None]:
        """The block raises an exception whose text is exactly this."""
        with self.assertRaises(expected_exception) as caught:
            yield
        self.assertEqual(str(caught.exception), expected_exception_message)


def _text(error: BaseException) -> str:
    if not isinstance(error, errors.OpError):
        return str(error)
    return error.message if error.op is None else f"{error.message}\nCaused by op: {error.op.name}"
