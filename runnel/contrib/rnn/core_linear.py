"""``_linear``: the linear map with which programs of TensorFlow 1 write cells of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.rnn.linear import apply_linear, linear, linear_variables
from runnel.nn.rnn_cell.cell import require_depth

__all__ = ["_Linear", "_linear"]


class _Linear:
    """:func:`_linear` whose variables are made beforehand, for arguments like ``args``."""

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        depth, dtype = _depth(args)
        self._kernel, self._bias = linear_variables(
            depth, output_size, dtype, build_bias, bias_initializer, kernel_initializer
        )

    def __call__(self, args: Any) -> Any:
        return apply_linear(_values(args), self._kernel, self._bias)


def _values(args: Any) -> list[Any]:
    if args is None or (isinstance(args, Sequence) and not args):
        raise ValueError("`args` must be specified")
    return list(args) if isinstance(args, list | tuple) else [args]


def _depth(args: Any) -> tuple[int, Any]:
    """The depth of the matrices ``args`` together, and their type."""
    values = _values(args)
    return sum(require_depth(value.shape) for value in values), values[0].dtype.base_dtype


def _linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Any:
    """The matrices ``args``, joined, times ``kernel``, plus ``bias`` where that is asked for.

    ``kernel`` and ``bias`` are variables of the current scope; ``bias`` begins with zeros.
    """
    return linear(_values(args), output_size, bias, bias_initializer, kernel_initializer)
