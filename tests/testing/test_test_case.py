"""``tf.test.TestCase``: each assertion passes when it should and fails, saying why, when not.

The class below is a test case of the kind that users write. pytest runs it as it is; the last
test of this file runs it with unittest.
"""

from __future__ import annotations

import collections
import inspect
import os
import random
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import runnel as tf

Point = collections.namedtuple("Point", ["x", "y"])
nan, inf = float("nan"), float("inf")


def half(*values):
    return np.array(values, np.float16)


def brain(*values):
    return np.array(values, ml_dtypes.bfloat16)


# assertion: (arguments for which it passes, [arguments for which it fails, what it says])
ASSERTIONS = {
    "assertAllClose": (
        [
            ([1.0, 2.0], [1.0, 2.0 + 1e-7]),
            (nan, nan),
            ([inf, -inf], [inf, -inf]),
            ({"a": [1.0], "b": (2.0, [3.0, 4.0])}, {"b": (2.0, [3.0, 4.0]), "a": np.ones(1)}),
            (Point(1.0, [2.0]), Point(1.0, [2.0])),
            ([np.ones(2), np.ones(3)], [np.ones(2), np.ones(3)]),
            ([True, False], [True, False]),
            (half(1.0), brain(1.0)),
            (1 + 2j, 1 + 2j),
            (1.0, 1.1, 0.2),
            (1.0, 1.1, 0.0, 0.2),
            ([], []),
        ],
        [
            (
                ([1.0, 2.0], [1.0, 2.1]),
                r"1 of 2 elements.*difference 0.1.*at \[1\]: 2.0 against 2.1",
            ),
            (([1.0], [[1.0]]), "Shape mismatch"),
            ((nan, 1.0), "nan against 1.0"),
            ((inf, -inf), "inf against -inf"),
            (({"a": 1.0}, {"b": 1.0}), "different keys"),
            (({"a": 1.0}, [1.0]), "only one is a dict"),
            (({"a": [1.0, [2.0, 3.0]]}, {"a": [1.0, [2.0, 4.0]]}), r"at \['a'\]\[1\]"),
            (([np.ones(2)], [np.ones(2), np.ones(3)]), "different lengths"),
            (([True, False], [True, True]), "1 of 2"),
            ((1.0, 1.1, 1e-6, 1e-6, "while testing"), "while testing"),
        ],
    ),
    "assertAllCloseAccordingToType": (
        [
            (half(1.0), half(1.0005)),
            (brain(1.0), np.float32([1.008])),
            (np.float32([1.0]), np.float64([1.0 + 1e-7])),
            (np.float64([1.0]), np.float64([1.0 + 1e-9]), 1e-8, 1e-8),
        ],
        [
            ((half(1.0), half(1.01)), "Not close"),
            ((np.float32([1.0]), np.float32([1.0001])), "Not close"),
            ((np.float64([1.0]), np.float64([1.0 + 1e-7]), 1e-8, 1e-8), "Not close"),
        ],
    ),
    "assertNotAllClose": (
        [(1.0, 1.1), ([1.0], [1.0, 1.0]), (1.0, 1.1, 1e-3)],
        [((1.0, 1.0), "close at all"), ((1.0, 1.1, 0.5), "close"), ((1.0, 1.1, 0.0, 0.5), "close")],
    ),
    "assertAllEqual": (
        [
            ([1, 2], np.array([1, 2])),
            ([nan, 1.0], [nan, 1.0]),
            (brain(nan), brain(nan)),
            (["a", "b"], [b"a", b"b"]),
            ("text", b"text"),
            ([], []),
        ],
        [
            (([1, 2], [1, 3]), r"1 of 2 elements; first at \[1\]: .*2.* against .*3"),
            (([1, 2], [1]), "Shape mismatch"),
            ((["a"], ["b"]), "b'a' against b'b'"),
            ((1.0, nan), "nan"),
            ((1, 2, "while testing"), "while testing"),
        ],
    ),
    "assertNotAllEqual": (
        [([1, 2], [1, 3]), ([1], [1, 1])],
        [(([1], [1]), "equal at all"), (([1], [1], "while testing"), "while testing")],
    ),
    "assertAllGreater": (
        [([1, 2], 0)],
        [(([1, 2], 1), r"1 of 2 .*greater than 1; first at \[0\]")],
    ),
    "assertAllLess": ([([1, 2], 3)], [(([1, 2], 2), "less than 2")]),
    "assertAllGreaterEqual": ([([1, 2], 1)], [(([1, nan], 1), "at least 1")]),
    "assertAllLessEqual": ([([1, 2], 2)], [(([1, 2], 1), "at most 1")]),
    "assertAllInRange": (
        [([0, 1], 0, 1), ([0.5], 0, 1, True, True)],
        [
            (([0, 2], 0, 1), "between 0 and 1"),
            (([0, 1], 0, 1, True, False), "between"),
            (([0, 1], 0, 1, False, True), "between"),
        ],
    ),
    "assertAllInSet": ([([1, 2, 2], {1, 2, 3})], [(([1, 4], [1, 2]), "4")]),
    "assertNear": ([(1.0, 1.1, 0.2), (inf, inf, 0.0)], [((1.0, 1.1, 0.01), "1.0 != 1.1")]),
    "assertArrayNear": (
        [([1.0, 2.0], [1.1, 2.1], 0.2)],
        [(([1.0, 2.0], [1.0, 3.0], 0.2), "2.0 != 3.0"), (([1.0], [1.0, 1.0], 0.2), "1 != 2")],
    ),
    "assertNDArrayNear": (
        [(np.ones(2), np.ones(2) + 0.1, 0.2)],
        [((np.ones(2), np.ones(2) + 0.1, 0.1), "norm of the difference")],
    ),
    "assertShapeEqual": (
        [(np.ones((2, 3)), np.zeros((2, 3)))],
        [((np.ones((2, 3)), np.zeros((3, 2))), r"\[2, 3\] != \[3, 2\]")],
    ),
    "assertDTypeEqual": (
        [(np.float32([1]), tf.float32), (1.0, np.float64)],
        [((np.float32([1]), "float64"), "float32")],
    ),
    "assertEmpty": ([([],), ({},)], [(([1],), "1 != 0")]),
    "assertNotEmpty": ([([1],)], [(([],), "not greater than 0")]),
    "assertLen": ([([1, 2], 2)], [(([1], 2), "1 != 2")]),
    "assertItemsEqual": ([([1, 2, 2], (2, 1, 2))], [(([1, 2], [1, 2, 2]), "counts")]),
    "assertSameElements": ([([1, 2], [2, 1, 2])], [(([1], [1, 2]), "2")]),
    "assertContainsSubset": ([([1], [1, 2])], [(([1, 3], [1, 2]), r"missing: \{3\}")]),
    "assertNoCommonElements": ([([1], [2])], [(([1, 2], [2, 3]), r"in both: \{2\}")]),
    "assertBetween": ([(1, 1, 2)], [((3, 1, 2), r"3 is not in \[1, 2\]")]),
    "assertSequenceAlmostEqual": (
        [([1.0], [1.0 + 1e-9]), ([1.0], [1.1], None, None, 0.2), ([1.0], [1.01], 1)],
        [(([1.0], [1.1]), "1.0 != 1.1"), (([1.0], []), "1 != 0")],
    ),
    "assertStartsWith": ([("abc", "ab")], [(("abc", "b"), "does not start with 'b'")]),
    "assertEndsWith": ([("abc", "bc")], [(("abc", "b"), "does not end with 'b'")]),
    "assertRegexMatch": ([("abc", ["x", "b+"])], [(("abc", ["x"]), "matches none")]),
    "assertDeviceEqual": (
        [("/cpu:0", "/device:CPU:0"), (None, "")],
        [(("/cpu:0", "/gpu:0"), "CPU:0.*GPU:0")],
    ),
    "assertProtoEquals": (
        [
            ("allow_soft_placement: true", tf.ConfigProto(allow_soft_placement=True)),
            (tf.ConfigProto(), tf.ConfigProto()),
        ],
        [
            (("allow_soft_placement: true", tf.ConfigProto()), "allow_soft_placement"),
            ((tf.ConfigProto(placement_period=2), tf.ConfigProto()), "placement_period"),
        ],
    ),
}
# These are blocks; they have tests of their own below.
BLOCKS = {
    "assertRaisesWithPredicateMatch",
    "assertRaisesOpError",
    "assertRaisesWithLiteralMatch",
}


def test_every_assertion_is_tested_here():
    ours = {
        name
        for name, _ in inspect.getmembers(tf.test.TestCase)
        if name.startswith("assert") and not hasattr(unittest.TestCase, name)
    }
    assert ours == ASSERTIONS.keys() | BLOCKS


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ASSERTIONS)
def test_an_assertion(name):
    case = tf.test.TestCase()
    passing, failing = ASSERTIONS[name]
    for arguments in passing:
        getattr(case, name)(*arguments)
    for arguments, said in failing:
        with pytest.raises(case.failureException, match=f"(?s){said}"):
            getattr(case, name)(*arguments)


class UsersTest(tf.test.TestCase):
    """What a user writes."""

    def setUp(self):
        super().setUp()
        self.assertEqual(tf.get_default_graph().version, 0)

    def test_the_graph_is_fresh(self):
        self.assertEqual(tf.constant(1.0).op.name, "Const")

    def test_the_graph_is_fresh_again(self):
        self.assertEqual(tf.constant(1.0).op.name, "Const")

    def test_seeds_are_fixed(self):
        self.assertEqual(tf.get_default_graph().seed, 87654321)
        drawn = random.random(), np.random.rand()
        random.seed(87654321)
        np.random.seed(87654321)
        self.assertEqual(drawn, (random.random(), np.random.rand()))

    def test_a_session_for_the_test(self):
        v = tf.Variable(1.0)
        with self.test_session() as sess:
            sess.run(v.initializer)
            self.assertIs(tf.get_default_session(), sess)
        with self.cached_session() as again:
            self.assertIs(again, sess)  # with its variables
            self.assertAllEqual(v.eval(), 1.0)
        with self.test_session(graph=tf.Graph()) as other:
            self.assertIsNot(other, sess)
        with self.session() as new, self.assertRaisesOpError("uninitialized"):
            new.run(v)
        with (
            self.assertRaisesRegex(ValueError, "different from before"),
            self.cached_session(graph=tf.Graph()),
        ):
            pass

    def test_tensors_are_evaluated(self):
        v = tf.Variable([1.0, 2.0])
        self.evaluate(v.initializer)
        self.assertAllEqual(self.evaluate(v * 2.0), [2.0, 4.0])
        self.assertAllClose(v, [1.0, 2.0])
        self.assertAllClose({"v": v, "w": [v, v + 1.0]}, {"v": [1, 2], "w": [[1, 2], [2, 3]]})
        self.assertAllEqual(v + 1.0, [2.0, 3.0])
        self.assertAllInRange(v, 1, 2)
        self.assertShapeEqual(np.ones(2), v * 2.0)
        self.assertDTypeEqual(v, tf.float32)
        with self.assertRaisesRegex(self.failureException, "Not close"):
            self.assertAllClose(v, [1.0, 3.0])

    def test_exceptions(self):
        bad = tf.check_numerics(tf.constant([nan]), "found it", name="checked")
        with self.session() as sess:
            with self.assertRaisesOpError("found it"):
                sess.run(bad)
            with self.assertRaisesOpError("Caused by op: checked"):
                sess.run(bad)
            with self.assertRaisesOpError(lambda e: e.op is bad.op):
                sess.run(bad)
            with (
                self.assertRaisesRegex(self.failureException, "does not match: found it"),
                self.assertRaisesOpError("something else"),
            ):
                sess.run(bad)
            with (
                self.assertRaisesRegex(self.failureException, "OpError not raised"),
                self.assertRaisesOpError(""),
            ):
                pass
            with self.assertRaises(KeyError), self.assertRaisesOpError(""):
                raise KeyError
        with self.assertRaisesWithPredicateMatch(ValueError, "b.d"):
            raise ValueError("bad")
        with self.assertRaisesWithLiteralMatch(ValueError, "b.d"):
            raise ValueError("b.d")
        with (
            self.assertRaises(self.failureException),
            self.assertRaisesWithLiteralMatch(ValueError, "b.d"),
        ):
            raise ValueError("bad")

    def test_threads(self):
        done = []
        thread = self.checkedThread(target=done.append, args=(1,))
        thread.start()
        thread.join()
        self.assertFalse(thread.is_alive())
        self.assertEqual(done, [1])

        def fails(number=0):
            raise ValueError(number)

        thread = self.checkedThread(target=fails, kwargs={"number": 7})
        thread.start()
        with self.assertRaisesRegex(self.failureException, r"ValueError\(7\)"):
            thread.join()

    def test_files(self):
        directory = self.get_temp_dir()
        self.assertEqual(directory, self.get_temp_dir())
        self.assertTrue(os.path.isdir(directory))
        self.addCleanup(lambda: self.assertTrue(os.path.isdir(directory)))

    def test_what_is_printed(self):
        with open(os.path.join(self.get_temp_dir(), "out"), "w") as stream:
            with self.captureWritesToStream(stream) as printed:
                print("inside", file=stream)
                os.write(stream.fileno(), b"below\n")
                self.assertIn("inside", printed.contents())
            print("outside", file=stream)
        self.assertEqual(sorted(printed.contents().split()), ["below", "inside"])
        self.assertEqual(Path(stream.name).read_text(), "outside\n")


class NestedGraphTest(tf.test.TestCase):
    """A test that begins inside someone's graph has a fresh one all the same."""

    def run(self, result=None):
        with tf.Graph().as_default():
            tf.constant(1.0)
            outer = tf.get_default_graph()
            super().run(result)
            assert tf.get_default_graph() is outer

    def test_the_graph_is_fresh(self):
        self.assertEqual(tf.get_default_graph().version, 0)


def test_unittest_runs_them_too():
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(case)
        for case in (UsersTest, NestedGraphTest)
    )
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun == 12
    assert not result.errors and not result.failures
    skipped = {test.id().rpartition(".")[2] for test, _ in result.skipped}
    assert skipped == {"test_session"}  # which only looks like a test


def test_a_script_with_main(tmp_path):
    script = tmp_path / "square_test.py"
    script.write_text(
        textwrap.dedent(
            """
            import runnel as tf

            class SquareTest(tf.test.TestCase):
                def testSquare(self):
                    with self.test_session():
                        self.assertAllEqual(tf.square([2, 3]).eval(), [4, 9])

                def testWrong(self):
                    self.assertAllEqual(tf.square([2, 3]), [4, 8])

            if __name__ == "__main__":
                tf.test.main()
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(tf.__file__).parent.parent)}
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert result.returncode == 1
    assert "Ran 3 tests" in result.stderr and "failures=1, skipped=1" in result.stderr
    assert "first at [1]" in result.stderr and "9" in result.stderr
