"""``tf.test.TestCase``: unittest with a graph for each test, sessions and array assertions."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from runnel.graph.default_session import get_default_session
from runnel.graph.graph import Graph, reset_default_graph
from runnel.graph.random_seed import DEFAULT_GRAPH_SEED, set_random_seed
from runnel.runtime.session.session import Session
from runnel.testing.array_assertions import ArrayAssertions
from runnel.testing.checked_thread import CheckedThread
from runnel.testing.plain_assertions import PlainAssertions


class TestCase(ArrayAssertions, PlainAssertions):
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
        random.seed(DEFAULT_GRAPH_SEED)
        np.random.seed(DEFAULT_GRAPH_SEED)
        try:
            reset_default_graph()
        except AssertionError:  # inside someone's as_default block
            self._graph_context = Graph().as_default()
            self._graph_context.__enter__()
        set_random_seed(DEFAULT_GRAPH_SEED)

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
        if self._testMethodName == "test_session":
            self.skipTest("Not a test.")  # loaders take every method that begins with "test"
        chosen = self.cached_session if graph is None else self.session
        return chosen(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors: Any) -> Any:
        """The values of ``tensors`` in the default session (or this test's own)."""
        sess = get_default_session()
        if sess is not None:
            return sess.run(tensors)
        with self.test_session() as sess:
            return sess.run(tensors)

    # The world around -----------------------------------------------------------------------

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
        return CheckedThread(self, target, args, kwargs)

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:  # noqa: N802
        """What is written in the block to ``stream``'s file, by whatever part of the process.

        Example:
            >>> with self.captureWritesToStream(sys.stderr) as printed:
            ...     sess.run(tf.print("hello"))
            >>> self.assertIn("hello", printed.contents())
        """
        stream.flush()
        number = stream.fileno()
        original = os.dup(number)
        path = os.path.join(self.get_temp_dir(), f"captured-{original}")
        with open(path, "w+b") as file:
            os.dup2(file.fileno(), number)
            try:
                yield CapturedWrites(stream, path)
            finally:
                stream.flush()
                os.dup2(original, number)
                os.close(original)


class CapturedWrites:
    """What :meth:`TestCase.captureWritesToStream` has captured."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream = stream
        self._path = path

    def contents(self) -> str:
        """The text written so far."""
        if not self._stream.closed:
            self._stream.flush()
        with open(self._path, encoding="utf-8", errors="replace") as file:
            return file.read()
