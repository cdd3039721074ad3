"""Every test starts with an empty default graph and leaves no thread behind; passes and kernels
are checked."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator

import pytest

# Tests describe behaviour on the CPU wherever they run; JAX_PLATFORMS=cuda tries another device.
# What is placed on the host is compiled there.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "cpu" not in os.environ["JAX_PLATFORMS"].split(","):
    os.environ["JAX_PLATFORMS"] += ",cpu"

import runnel as tf  # noqa: E402
from runnel.native.build import kept_libraries  # noqa: E402
from runnel.passes.rewrites import rewrite  # noqa: E402
from runnel.runtime.interpret import verification  # noqa: E402
from runnel.runtime.segment.beside import THREAD_NAME  # noqa: E402

# What a run of the tests compiles it keeps to itself, and all of its processes share it. Libraries,
# which take long to build, are the user's where they are there.
if "RUNNEL_TEST_CACHE" not in os.environ:
    os.environ["RUNNEL_TEST_CACHE"] = tempfile.mkdtemp(prefix="runnel-tests-")
    atexit.register(shutil.rmtree, os.environ["RUNNEL_TEST_CACHE"], ignore_errors=True)
    for library in kept_libraries():
        os.symlink(library, os.path.join(os.environ["RUNNEL_TEST_CACHE"], library.name))
os.environ["RUNNEL_CACHE_DIR"] = os.environ["RUNNEL_TEST_CACHE"]

# A shell that runs the tests in the background has Ctrl-C ignored, also by what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tolerances of tests are float32's, and errors come from the step that fails. (tf32, and steps
# that are sent ahead, have their own tests.)
tf.config.experimental.enable_tensor_float_32_execution(False)
if "RUNNEL_STEPS_AHEAD" not in os.environ:
    tf.config.experimental.set_synchronous_execution(True)

LEAVING_SECONDS = 20.0
COMPILING_SECONDS = 100.0


@pytest.fixture(autouse=True)
def _fresh_default_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def leaves_no_thread() -> Iterator[None]:
    """Fails a test that leaves a thread running; those that are about to end may do so."""
    before = set(threading.enumerate())
    yield
    leaked = [thread for thread in threading.enumerate() if thread not in before]
    for thread in leaked:
        # A step does not wait for its compilation, and nothing can interrupt that.
        thread.join(COMPILING_SECONDS if thread.name == THREAD_NAME else LEAVING_SECONDS)
    names = [f"{thread.name} ({thread!r})" for thread in leaked if thread.is_alive()]
    if names:
        pytest.fail(f"threads are still running: {', '.join(names)}", pytrace=False)


_no_leaked_threads = pytest.fixture(autouse=True, name="_no_leaked_threads")(leaves_no_thread)


@pytest.fixture(autouse=True, scope="session")
def _checked_passes() -> Iterator[None]:
    rewrite.check_between_passes = verification.enabled = True
    yield
    rewrite.check_between_passes = verification.enabled = False
