"""``tf.debugging``: checks of tensors, in the graph and while it is built."""

from runnel.ops.assertions import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_type,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from runnel.ops.checks import Assert, check_numerics
from runnel.ops.checks import verify_tensor_all_finite as assert_all_finite
from runnel.ops.rounding import is_finite, is_inf, is_nan


def set_log_device_placement(enabled: bool) -> None:
    """Has sessions without a configuration of their own log where their operations run."""
    from runnel.runtime.session import settings

    settings.default_config().log_device_placement = bool(enabled)


def get_log_device_placement() -> bool:
    """What :func:`set_log_device_placement` has said."""
    from runnel.runtime.session import settings

    return bool(settings.default_config().log_device_placement)


__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "check_numerics",
    "get_log_device_placement",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "set_log_device_placement",
]


def __dir__() -> list[str]:
    return __all__
