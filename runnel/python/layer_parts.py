"""Names of ``layers.utils`` that are not public: arguments and sizes of convolutions."""

from __future__ import annotations

from typing import Any

__all__ = [
    "conv_input_length",
    "conv_output_length",
    "convert_data_format",
    "deconv_output_length",
    "normalize_data_format",
    "normalize_padding",
    "normalize_tuple",
]


def convert_data_format(data_format: str, ndim: int) -> str:
    """The format of operations for that of layers: ``channels_last`` of rank 4 is ``NHWC``."""
    forms = {
        "channels_last": {3: "NWC", 4: "NHWC", 5: "NDHWC"},
        "channels_first": {3: "NCW", 4: "NCHW", 5: "NCDHW"},
    }
    if data_format not in forms:
        raise ValueError(f"Invalid data_format: {data_format}")
    if ndim not in forms[data_format]:
        raise ValueError(f"Input rank not supported: {ndim}")
    return forms[data_format][ndim]


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """``n`` integers, of one for all or of one for each."""
    if isinstance(value, int):
        return (value,) * n
    try:
        found = tuple(int(single) for single in value)
    except (TypeError, ValueError):
        found = ()
    if len(found) != n:
        raise ValueError(
            f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
        )
    return found


def _one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    found = value.lower()
    if found not in allowed:
        raise ValueError(f"The `{what}` argument must be one of {allowed}. Received: {value}")
    return found


def normalize_data_format(value: str) -> str:
    """``channels_first`` or ``channels_last``."""
    return _one_of(value, ("channels_first", "channels_last"), "data_format")


def normalize_padding(value: str) -> str:
    """``valid`` or ``same``."""
    return _one_of(value, ("valid", "same"), "padding")


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The size of the output of a convolution; None: unknown."""
    if input_length is None:
        return None
    window = filter_size + (filter_size - 1) * (dilation - 1)
    more = {"same": 0, "valid": 1 - window, "full": window - 1}[padding]
    return (input_length + more + stride - 1) // stride


def conv_input_length(
    output_length: int | None, filter_size: int, padding: str, stride: int
) -> int | None:
    """The size of the input of a convolution; None: unknown."""
    if output_length is None:
        return None
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def deconv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int
) -> int | None:
    """The size of the output of a transposed convolution; None: unknown."""
    if input_length is None:
        return None
    more = {
        "same": 0,
        "valid": max(filter_size - stride, 0),
        "full": -(stride + filter_size - 2),
    }[padding]
    return input_length * stride + more
