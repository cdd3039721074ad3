"""Sessions that begin from a checkpoint, or from initial values; or wait for who does it."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import numpy as np

from runnel.graph.graph import Graph, get_default_graph
from runnel.runtime.session.session import Session
from runnel.train.checkpoint_state import get_checkpoint_state, latest_checkpoint
from runnel.train.live_model import LiveModel

logger = logging.getLogger("runnel")

_FIRST_WAIT_SECONDS = 0.1
"""The first pause of a worker that waits for its chief; each is twice the one before, up to
``recovery_wait_secs``, so that a worker loses no more time than the chief has taken."""


class SessionManager:
    """Makes sessions that are ready: what ``ready_op`` names is not initialised is nothing.

    ``local_init_op`` is run in each new session, when ``ready_for_local_init_op`` allows it.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph or get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        self._live_model = LiveModel(self._graph)

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Any = None,
    ) -> Session:
        """A session whose variables come from the newest checkpoint, or from ``init_op``.

        A chief that comes back to parameter servers that live goes on with what they have, where
        that is newer (``live_model.py``).
        """
        sess, restored = self._restore(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
            may_keep=True,
        )
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                sess.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(sess)
        done, message = self._try_local_init(sess)
        if not done:
            raise RuntimeError(
                f"Init operations did not make model ready for local_init: {message}"
            )
        ready, message = self._is_ready(sess)
        if not ready:
            raise RuntimeError(f"Init operations did not make model ready: {message}")
        if checkpoint_dir:
            self._live_model.is_whole(checkpoint_dir)
        return sess

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """A session from the newest checkpoint, and whether it is ready."""
        sess, restored = self._restore(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        done, message = self._try_local_init(sess)
        if not done:
            logger.info("The model is not ready for local_init: %s", message)
            return sess, False
        ready, message = self._is_ready(sess)
        if not ready:
            logger.info("The model is not ready: %s", message)
        return sess, ready and restored

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float = float("inf")
    ) -> Session:
        """A session whose variables another process has initialised; waits until it has."""
        deadline = time.monotonic() + max_wait_secs
        pause = min(_FIRST_WAIT_SECONDS, self._recovery_wait_secs)
        while True:
            sess = Session(master, graph=self._graph, config=config)
            done, message = self._try_local_init(sess)
            ready = False
            if done:
                ready, message = self._is_ready(sess)
            if ready:
                return sess
            sess.close()
            if time.monotonic() + pause > deadline:
                from runnel.graph.errors import DeadlineExceededError

                raise DeadlineExceededError(
                    None,
                    None,
                    f"Session was not ready after waiting {max_wait_secs} secs: {message}",
                )
            logger.info("Waiting for model to be ready: %s", message)
            threading.Event().wait(pause)  # for another process
            pause = min(2 * pause, self._recovery_wait_secs)

    def _restore(
        self,
        master: str,
        saver: Any,
        folder: str | None,
        path: str | None,
        wait: bool,
        max_wait_secs: float,
        config: Any,
        may_keep: bool = False,
    ) -> tuple[Session, bool]:
        if folder and path:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        sess = Session(master, graph=self._graph, config=config)
        if saver is None or not (folder or path):
            return sess, False
        if path is None:
            deadline = time.monotonic() + max_wait_secs
            path = latest_checkpoint(folder)
            while path is None and wait and time.monotonic() < deadline:
                logger.info("Waiting for a checkpoint in %s", folder)
                threading.Event().wait(min(1.0, self._recovery_wait_secs))  # another process
                path = latest_checkpoint(folder)
        keeps = may_keep and self._live_model.is_newer(sess, self._has_globals, folder, path)
        if path is None:
            return sess, keeps
        if not keeps:
            saver.restore(sess, path, random_streams=True)
        state = get_checkpoint_state(folder) if folder else None
        if state is not None:
            saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
        return sess, True

    def _try_local_init(self, sess: Session) -> tuple[bool, str | None]:
        if self._local_init_op is None:
            return True, None
        allowed, message = _holds(self._ready_for_local_init_op, sess, "ready for local init")
        if allowed:
            sess.run(
                self._local_init_op,
                feed_dict=self._local_init_feed_dict,
                options=self._local_init_run_options,
            )
        return allowed, message

    def _has_globals(self, sess: Session) -> bool:
        """Whether the variables are known to be there that workers share, before local ones are."""
        op = (
            self._ready_op
            if self._ready_for_local_init_op is None
            else self._ready_for_local_init_op
        )
        return op is not None and _holds(op, sess, "ready for local init")[0]

    def _is_ready(self, sess: Session) -> tuple[bool, str | None]:
        return _holds(self._ready_op, sess, "ready")


def _holds(op: Any, sess: Session, what: str) -> tuple[bool, str | None]:
    """Whether what ``op`` gives, names of variables that are not initialised, is empty."""
    if op is None:
        return True, None
    found = np.asarray(sess.run(op)).reshape(-1)
    if not len(found):
        return True, None
    names = ", ".join(n.decode() if isinstance(n, bytes) else str(n) for n in found)
    return False, f"Variables not initialized: {names} ({what})"
