"""How many threads NumPy's products use in the interpreted tier: one, unless they are large.

OpenBLAS gives each product that is not tiny to all its threads, which wait for one another. Where
another process is busy, a thread waits for its turn (4 ms and more, up to 60) while the product
would take a tenth of that; and only one product at a time may use the threads. So a large product
is given to all threads, and when that took longer than one thread would have, the next ones are not
for a while: a busy machine costs a few per cent.
"""

from __future__ import annotations

import ctypes
import sys
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter
from typing import Any

_TINY = 1 << 18
"""Up to this many multiplications OpenBLAS itself uses one thread."""
_TINY_VECTOR = 9 << 10
"""The same, where one operand is a vector."""
_LARGE = 1 << 25
"""From this many on, threads are worth trying: a core takes about a millisecond."""
_MEASURED = 1 << 22
"""From this many on, what a product takes says how fast a core is."""
_CAUTION = 30
"""Where threads have cost time instead of saving it, one works for so many times as long."""


class _Experience:
    """What products of one type have taken, and until when threads are not tried again."""

    __slots__ = ("seconds", "alone_until")

    def __init__(self) -> None:
        self.seconds = 1e-10
        """For one multiplication on one thread, of the products that were fastest."""
        self.alone_until = 0.0

    def note_alone(self, work: int, seconds: float) -> None:
        """Takes note of a product on one thread."""
        self.seconds = min(self.seconds, seconds / work)

    def note_threads(self, work: int, seconds: float, now: float) -> None:
        """Takes note of a product on all threads: were they worth it?"""
        lost = seconds - 1.5 * work * self.seconds
        if lost > 0:
            self.alone_until = now + _CAUTION * lost


_experience: dict[Any, _Experience] = defaultdict(_Experience)
"""By the type of the elements."""


def multiply(product: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """``product(a, b)``, of (stacks of) matrices or of a matrix and a vector, of NumPy."""
    columns = b.shape[-1]
    work = a.size * columns
    if work <= _TINY and (work <= _TINY_VECTOR or (columns != 1 and a.shape[-2] != 1)):
        return product(a, b)
    if work < _MEASURED:
        return with_threads_for(work, product, a, b)
    known, start = _experience[a.dtype], perf_counter()
    if work < _LARGE or start < known.alone_until:
        result = with_threads_for(_TINY, product, a, b)
        known.note_alone(work, perf_counter() - start)
    else:
        result = with_threads_for(work, product, a, b)
        end = perf_counter()
        known.note_threads(work, end - start, end)
    return result


def with_threads_for(work: int, compute: Callable[..., Any], *arguments: Any) -> Any:
    """``compute(*arguments)``, which makes about ``work`` multiplications with OpenBLAS.

    The number of threads belongs to the process: it is changed only while this computes, and
    another thread that begins a product of its own meanwhile has one thread for it too.
    """
    if _get_threads is None or _set_threads is None or not _TINY_VECTOR < work < _LARGE:
        return compute(*arguments)
    usual = _get_threads()
    if usual == 1:
        return compute(*arguments)
    try:
        _set_threads(1)
        return compute(*arguments)
    finally:
        _set_threads(usual)


def _find() -> tuple[Callable[[], int] | None, Callable[[int], None] | None]:
    """What reads and sets the threads of the OpenBLAS that NumPy has loaded, if it is one."""
    numpy = sys.modules.get("numpy._core._multiarray_umath")
    if numpy is None or numpy.__file__ is None:
        return None, None
    try:
        library = ctypes.PyDLL(numpy.__file__)  # with it, what it is linked to
    except OSError:
        return None, None
    for prefix, suffix in ("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""):
        try:
            kind = library[f"{prefix}openblas_get_parallel{suffix}"]
            get = library[f"{prefix}openblas_get_num_threads{suffix}"]
            set_ = library[f"{prefix}openblas_set_num_threads{suffix}"]
        except AttributeError:
            continue
        set_.argtypes, set_.restype = [ctypes.c_int], None
        if kind() == 1:  # threads of its own; those of OpenMP are each caller's
            return get, set_
        break
    return None, None


_get_threads, _set_threads = _find()
