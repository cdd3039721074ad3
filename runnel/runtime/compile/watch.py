"""Stops compiled calls: those that may run long ask the host from time to time.

A loop that may run long runs a number of iterations, a *quantum*, at a time. After each it asks.
The host looks at the step, and answers with 0 to stop or with the next quantum, which it chooses by
the time that the last one took, so that the loop asks some fifty times a second. The first quantum
comes from an estimate (``runtime.compile.work_estimate``). A segment that runs long without a loop
asks between its pieces (``runtime.compile.pieces``).

A stopped call reports a check that did not hold. Like any failed check, that leaves every variable
as it was.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.runtime.compile.native_question import native_question
from runnel.runtime.state.in_thread import ThreadCall
from runnel.runtime.state.step_context import StepContext

_QUANTUM_SECONDS = 0.02
"""How long a loop runs between two looks, as measured."""
_MOST_SECONDS = 1.0
"""How long it runs at most, as estimated: iterations that were short so far may become long."""
LONG_SECONDS = 0.25
"""For how long a call, or a loop in it, may run without a look, as estimated."""
SHARED_SECONDS = 0.02
"""The same for one of many calls of a step, which are started one after the other."""
INLINE_SECONDS = 2e-5
"""What takes longer, as estimated, XLA runs on several threads: also what asks, in it."""
_MOST = 1 << 30
_INLINE_FLOPS = 1_000

# XLA takes the native function once; several segments may be traced at a time.
_registering = threading.Lock()
_numbers = itertools.count(1)
_running: dict[int, CompiledRun] = {}


class CompiledRun:
    """One call of a compiled segment that asks; ``number`` is the argument that tells it which."""

    __slots__ = ("number", "context", "asked", "interrupt")

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.interrupt: BaseException | None = None
        """What a signal handler raised while the call was being waited for."""
        self.asked = time.perf_counter()
        number = next(_numbers) % (1 << 31)
        self.number = np.int32(number)
        _running[number] = self

    def result_of(self, function: Callable[[], Any]) -> Any:
        """The result of ``function``, on another thread; an interrupt has the call stop."""
        return ThreadCall(function).result(self.interrupted)

    def interrupted(self, interrupt: BaseException) -> None:
        """Has the call stop, for what a signal handler raised; that is raised when it has."""
        self.interrupt = interrupt
        self.context.cancel("it was interrupted")

    def end(self) -> None:
        """Forgets the call."""
        _running.pop(int(self.number), None)


def await_array(array: Any, interrupted: Callable[[BaseException], None]) -> None:
    """Waits for what a call makes to the end; ``interrupted`` is told of an interrupt."""
    while True:
        try:
            array.block_until_ready()
            break
        except BaseException as error:
            if isinstance(error, Exception) and array.is_ready():
                raise  # the device failed
            interrupted(error)


def _next_quantum(number: int, count: int) -> int:
    """What a loop of run ``number`` that has run ``count`` iterations since the last look does."""
    run = _running.get(number)
    if run is None or run.context.must_stop():
        return 0
    now = time.perf_counter()
    elapsed, run.asked = now - run.asked, now
    return int(min(_MOST, max(1, count * _QUANTUM_SECONDS / max(elapsed, 1e-6))))


def _answer(number: Any, count: Any, *_: Any) -> np.int32:
    try:
        return np.int32(_next_quantum(int(number), int(count)))
    except BaseException as interrupt:
        _running[int(number)].interrupted(interrupt)
        return np.int32(0)


def register_question() -> Callable[..., Any]:
    """The native function that asks, which XLA knows from now on."""
    with _registering:
        return native_question(_next_quantum)


class Asker:
    """Asks about one run, in a traced program.

    A callback of JAX has XLA run the program on the thread that calls it. That is best for what is
    short: nothing is handed from thread to thread. Where other things must go on meanwhile, or an
    iteration takes long enough to be shared among threads (the calling thread, which signals
    interrupt, would then only wait), the question ``is_native``: XLA's own threads run the program.
    """

    def __init__(self, number: Any, is_native: bool) -> None:
        self.number = number
        """That of the run, traced."""
        self._is_native = is_native

    def ask(self, count: Any, *after: Any) -> Any:
        """The next quantum, or 0 to stop; asked when the arrays ``after`` have been computed."""
        import jax
        import jax.numpy as jnp

        count = jnp.asarray(count, np.int32)
        if self._is_native:
            return register_question()(self.number, count, *after)
        answer = jax.ShapeDtypeStruct((), np.int32)
        return jax.pure_callback(_answer, answer, self.number, count, *after)

    def is_started_elsewhere(self) -> Any:
        """True; a native question is then never asked on the thread that makes the call.

        XLA's CPU client runs a program of fewer than 1,000 operations on that thread, and counts a
        loop as one iteration. These are more.
        """
        import jax.numpy as jnp

        if not self._is_native:
            return jnp.asarray(True)
        return jnp.max(jnp.arange(2 * _INLINE_FLOPS, dtype=np.int32) ^ self.number) >= 0


def stoppable_loop(
    goes_on: Callable[[Any], Any],
    body: Callable[[Any], Any],
    start: Any,
    asker: Asker,
    seconds: float,
) -> tuple[Any, Any]:
    """``lax.while_loop(goes_on, body, start)`` that asks; and whether it was stopped.

    An iteration takes ``seconds``, as estimated.
    """
    import jax.numpy as jnp
    from jax import lax

    seconds = max(seconds, 1e-9)
    most = min(_MOST, max(1, int(_MOST_SECONDS / seconds)))

    def some(carry: Any) -> Any:
        state, quantum, _ = carry
        state, count = lax.while_loop(
            lambda c: goes_on(c[0]) & (c[1] < quantum),
            lambda c: (body(c[0]), c[1] + 1),
            (state, jnp.zeros((), np.int32)),
        )
        quantum = lax.cond(count >= quantum, lambda: asker.ask(count), lambda: quantum)
        return state, jnp.minimum(quantum, most), quantum == 0

    first = jnp.asarray(min(most, max(1, int(_QUANTUM_SECONDS / seconds))), np.int32)
    state, _, stopped = lax.while_loop(
        lambda carry: goes_on(carry[0]) & ~carry[2],
        some,
        (start, first, jnp.asarray(False)),
    )
    return state, stopped


def was_interrupted(error: Exception) -> bool:
    """True for a call that failed because a signal came during it, on this thread.

    XLA tells of what a function raises that it asks, and JAX of what is raised while it compares
    the keys of its caches, by errors of their own with the traceback in their words.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    words = str(error)
    return "KeyboardInterrupt" in words and ("callback" in words or "Cache keys" in words)
