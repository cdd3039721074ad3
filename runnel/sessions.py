"""``tf.Session`` and what comes with it: on this process, or on a cluster's."""

from importlib import import_module

from runnel.runtime.session.backend import register_target
from runnel.runtime.session.fetches import register_session_run_conversion_functions
from runnel.runtime.session.session import InteractiveSession, Session

__all__ = ["InteractiveSession", "Session", "register_session_run_conversion_functions"]

register_target("grpc", lambda: import_module("runnel.distributed.targets").load())
