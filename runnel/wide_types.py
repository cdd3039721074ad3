"""JAX's 64-bit types, switched on for a call and never for the process.

JAX switches them on and off in Python code, for a thread: an interrupt there leaves them as they
are at that moment. What the user's thread may do is done by :func:`with_wide_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def with_wide_types(function: Callable[..., _Result], *arguments: object) -> _Result:
    """``function(*arguments)`` while this thread's JAX has 64-bit types.

    Example:
        >>> doubled = with_wide_types(jax.jit(lambda x: 2 * x), np.arange(3))
        >>> doubled.dtype
        dtype('int64')
    """
    import jax

    before = has_wide_types()
    try:
        with jax.enable_x64(True):
            return function(*arguments)
    except BaseException:
        restore_types(before)
        raise


def has_wide_types() -> bool:
    """True while this thread's JAX has 64-bit types."""
    import jax

    return jax.config.jax_enable_x64  # type: ignore[attr-defined, no-any-return]


def restore_types(before: bool) -> None:
    """Has this thread's JAX have 64-bit types, or not, as ``before``."""
    import jax

    if has_wide_types() != before:
        jax.enable_x64(before).__enter__()  # and is not left
