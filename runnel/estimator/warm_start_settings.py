"""Where the variables of a new model begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class WarmStartSettings(NamedTuple):
    """Variables that match begin with the values of a checkpoint; see ``tf.train.warm_start``.

    Example:
        >>> tf.estimator.WarmStartSettings("/tmp/other", vars_to_warm_start="encoder.*")
    """

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, Any] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None
