"""``tf.contrib.estimator``: more metrics, forwarded features, and ending training early."""

from runnel.estimator.early_stopping import (
    make_early_stopping_hook,
    read_eval_metrics,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from runnel.estimator.extenders import add_metrics, forward_features

__all__ = [
    "add_metrics",
    "forward_features",
    "make_early_stopping_hook",
    "read_eval_metrics",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


def __dir__() -> list[str]:
    return __all__
