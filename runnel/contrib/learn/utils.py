"""``tf.contrib.learn.utils``: serving, under the names that programs import."""

from runnel.contrib.learn import serving as input_fn_utils
from runnel.contrib.learn import serving as saved_model_export_utils

__all__ = ["input_fn_utils", "saved_model_export_utils"]


def __dir__() -> list[str]:
    return __all__
