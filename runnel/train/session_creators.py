"""Who makes the sessions of a monitored session: the chief, or a worker that waits for it."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.train.scaffold import Scaffold
from runnel.train.session_manager import SessionManager


class SessionCreator:
    """Makes sessions."""

    def create_session(self) -> Any:
        """A session that is ready."""
        raise NotImplementedError(f"create_session is not implemented for {type(self).__name__}.")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that begin from the newest checkpoint, or initialise the variables."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._manager: SessionManager | None = None

    def create_session(self) -> Any:
        scaffold = self._scaffold.finalize()
        if self._manager is None:  # one for all sessions: it knows what they have begun
            self._manager = _manager(scaffold)
        return self._manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions that wait for the chief to initialise the variables."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        return _manager(self._scaffold.finalize()).wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


_ASK_AGAIN_SECONDS = 1.0
"""How long a worker waits before it asks again whether the chief is done. SessionManager's 30 would
be how long it stands still when a parameter server comes back."""


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
        recovery_wait_secs=_ASK_AGAIN_SECONDS,
    )
