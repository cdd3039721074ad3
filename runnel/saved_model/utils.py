"""``tf.saved_model.utils``: TensorFlow's name for what describes tensors."""

from runnel.saved_model.tensor_info import build_tensor_info, get_tensor_from_tensor_info

__all__ = ["build_tensor_info", "get_tensor_from_tensor_info"]


def __dir__() -> list[str]:
    return __all__
