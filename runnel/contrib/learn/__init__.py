"""``tf.contrib.learn``: models with ``fit``, ``evaluate`` and ``predict``, and experiments."""

from runnel.contrib.learn import (
    datasets,
    learn_runner,
    models,
    monitors,
    preprocessing,
    utils,
)
from runnel.contrib.learn.canned import (
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
)
from runnel.contrib.learn.estimator import (
    BaseEstimator,
    Estimator,
    NotFittedError,
    SKCompat,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from runnel.contrib.learn.experiment import Experiment, ExportStrategy
from runnel.contrib.learn.heads import (
    Head,
    binary_svm_head,
    multi_class_head,
    multi_label_head,
    no_op_train_fn,
    poisson_regression_head,
    regression_head,
)
from runnel.contrib.learn.keys import MetricKey, ModeKeys, PredictionKey, ProblemType, TaskType
from runnel.contrib.learn.metric_spec import MetricSpec
from runnel.contrib.learn.model_fn_ops import ModelFnOps
from runnel.contrib.learn.run_config import RunConfig
from runnel.contrib.learn.serving import (
    InputFnOps,
    build_default_serving_input_fn,
    build_parsing_serving_input_fn,
    make_export_strategy,
)
from runnel.train.hooks import NanLossDuringTrainingError

__all__ = [
    "BaseEstimator",
    "DNNClassifier",
    "DNNEstimator",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "Experiment",
    "ExportStrategy",
    "Head",
    "InputFnOps",
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "MetricKey",
    "MetricSpec",
    "ModeKeys",
    "ModelFnOps",
    "NanLossDuringTrainingError",
    "NotFittedError",
    "PredictionKey",
    "ProblemType",
    "RunConfig",
    "SKCompat",
    "TaskType",
    "binary_svm_head",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "datasets",
    "infer_real_valued_columns_from_input",
    "infer_real_valued_columns_from_input_fn",
    "learn_runner",
    "make_export_strategy",
    "models",
    "monitors",
    "multi_class_head",
    "multi_label_head",
    "no_op_train_fn",
    "poisson_regression_head",
    "preprocessing",
    "regression_head",
    "utils",
]


def __dir__() -> list[str]:
    return __all__
