"""``tf.Session`` and what comes with it: on this process, or on a cluster's."""

from runnel.runtime.session.fetches import register_session_run_conversion_functions
from runnel.runtime.session.session import InteractiveSession, Session

__all__ = ["InteractiveSession", "Session", "register_session_run_conversion_functions"]
