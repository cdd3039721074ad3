"""TensorFlow's exception classes: what went wrong in which operation, and where it was made."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runnel.graph.operation import Operation

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """Raised when running (part of) a graph fails.

    ``op`` is the operation that failed (None when none did), ``node_def`` its description,
    ``message`` what went wrong, ``error_code`` one of the numbers of this module.
    """

    code = UNKNOWN

    def __init__(
        self,
        node_def: Any,
        op: Operation | None,
        message: str,
        error_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = self.code if error_code is None else error_code

    @property
    def message(self) -> str:
        return self._message

    @property
    def op(self) -> Operation | None:
        return self._op

    @property
    def node_def(self) -> Any:
        if self._node_def is None and self._op is not None:
            self._node_def = self._op.node_def
        return self._node_def

    @property
    def error_code(self) -> int:
        return self._error_code

    def remark(self, text: str) -> None:
        """Adds ``text`` to the message."""
        self._message = f"{self._message} {text}"
        self.args = (self._message,)

    def __str__(self) -> str:
        if self._op is None:
            return self._message
        op = self._op
        lines = [self._message, f"\nFailed operation: {op.origin!r} ({op.type}), created at:"]
        lines += [f"  {line}" for line in op.creation_site()]
        for tensor in op.inputs:
            site = tensor.op.creation_site()[-1:]
            where = f", made at {site[0].splitlines()[0]}" if site else ""
            lines.append(f"  input {tensor.name} {tensor.dtype.name} {tensor.shape}{where}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, str(self), self._error_code)


class CancelledError(OpError):
    """An operation or step was cancelled."""

    code = CANCELLED


class UnknownError(OpError):
    """An error of no better known kind, such as an exception in a ``py_func``."""

    code = UNKNOWN


class InvalidArgumentError(OpError):
    """An operation received a value that it cannot use."""

    code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed before the operation finished."""

    code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """Something asked for (a file, a key) does not exist."""

    code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that was to be created exists already."""

    code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller may not do this."""

    code = PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    """Some resource, such as device memory, has run out."""

    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in the state that the operation needs, e.g. an uninitialised variable."""

    code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The operation was aborted, typically by a concurrent action."""

    code = ABORTED


class OutOfRangeError(OpError):
    """Iteration went past the end of the valid range, e.g. a closed and empty queue."""

    code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """The operation has no implementation for what was asked."""

    code = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of runnel itself is broken."""

    code = INTERNAL


class UnavailableError(OpError):
    """The runtime is unreachable at the moment."""

    code = UNAVAILABLE


class DataLossError(OpError):
    """Data is lost or corrupt beyond recovery."""

    code = DATA_LOSS


class UnauthenticatedError(OpError):
    """The request carries no valid credentials."""

    code = UNAUTHENTICATED


_BY_CODE = {cls.code: cls for cls in OpError.__subclasses__()}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The exception class for an error number."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The error number of an exception class."""
    return cls.code


_OF_SYSTEM: list[tuple[type[OSError], type[OpError]]] = [
    (FileNotFoundError, NotFoundError),
    (FileExistsError, AlreadyExistsError),
    (PermissionError, PermissionDeniedError),
    (IsADirectoryError, FailedPreconditionError),
    (NotADirectoryError, FailedPreconditionError),
]
_BY_NUMBER: dict[int | None, type[OpError]] = {
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
}


def exception_type_from_os_error(error: OSError) -> type[OpError]:
    """The exception class for what the operating system has refused."""
    for theirs, ours in _OF_SYSTEM:
        if isinstance(error, theirs):
            return ours
    return _BY_NUMBER.get(error.errno, UnknownError)


def __dir__() -> list[str]:
    codes = [name for name, value in globals().items() if name.isupper() and type(value) is int]
    kinds = [name for name in globals() if name.endswith("Error")]
    return [*codes, *kinds, "error_code_from_exception_type", "exception_type_from_error_code"]
