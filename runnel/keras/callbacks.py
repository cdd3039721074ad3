"""``tf.keras.callbacks``: what is called as a model trains."""

from runnel.keras.callback import BaseLogger, Callback, CallbackList, History, ProgbarLogger
from runnel.keras.checkpoint_callback import ModelCheckpoint
from runnel.keras.logging_callbacks import CSVLogger, LambdaCallback, RemoteMonitor, TerminateOnNaN
from runnel.keras.steering_callbacks import (
    EarlyStopping,
    LearningRateScheduler,
    ReduceLROnPlateau,
)
from runnel.keras.tensorboard_callback import TensorBoard

__all__ = [
    "BaseLogger",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ProgbarLogger",
    "ReduceLROnPlateau",
    "RemoteMonitor",
    "TensorBoard",
    "TerminateOnNaN",
]


def __dir__() -> list[str]:
    return __all__
