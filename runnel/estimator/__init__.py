"""``tf.estimator``: models as functions, trained, evaluated and exported."""

from runnel.estimator import experimental, export, inputs, tpu
from runnel.estimator.canned.estimators import (
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearRegressor,
)
from runnel.estimator.estimator import Estimator
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter
from runnel.estimator.extenders import add_metrics
from runnel.estimator.mode_keys import ModeKeys
from runnel.estimator.run_config import RunConfig
from runnel.estimator.train_and_evaluate import train_and_evaluate
from runnel.estimator.train_spec import EvalSpec, TrainSpec
from runnel.estimator.warm_start_settings import WarmStartSettings
from runnel.train.checkpoint_hook import CheckpointSaverHook, CheckpointSaverListener
from runnel.train.hooks import (
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from runnel.train.profiler_hook import ProfilerHook
from runnel.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = [
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "BestExporter",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LatestExporter",
    "LoggingTensorHook",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "ProfilerHook",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "WarmStartSettings",
    "add_metrics",
    "experimental",
    "export",
    "inputs",
    "tpu",
    "train_and_evaluate",
]


def __dir__() -> list[str]:
    return __all__
