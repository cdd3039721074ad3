"""``tf.train``: optimizers, learning rates, the global step, threads, input queues, checkpoints."""

from typing import Any

from runnel.distributed.cluster_spec import ClusterSpec
from runnel.events.event_reader import summary_iterator
from runnel.graph_io import write_graph
from runnel.summary.file_writer import FileWriter as SummaryWriter  # 0.12's name
from runnel.summary.file_writer import FileWriterCache as SummaryWriterCache
from runnel.train import experimental
from runnel.train.adadelta import AdadeltaOptimizer
from runnel.train.adagrad import AdagradDAOptimizer, AdagradOptimizer, ProximalAdagradOptimizer
from runnel.train.adam import AdamOptimizer
from runnel.train.best_saver import BestSaver
from runnel.train.bounded_staleness import BoundedStalenessOptimizer
from runnel.train.checkpoint_hook import CheckpointSaverHook, CheckpointSaverListener
from runnel.train.checkpoint_state import (
    checkpoint_exists,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from runnel.train.checkpoint_utils import (
    NewCheckpointReader,
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
    warm_start,
)
from runnel.train.checkpoint_waiting import checkpoints_iterator
from runnel.train.collective_optimizer import CollectiveOptimizer
from runnel.train.coordinator import Coordinator, LooperThread
from runnel.train.device_setter import replica_device_setter
from runnel.train.ftrl import FtrlOptimizer
from runnel.train.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from runnel.train.gradient_descent import (
    GradientDescentOptimizer,
    ProximalGradientDescentOptimizer,
)
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
from runnel.train.input_batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from runnel.train.input_producers import (
    input_producer,
    limit_epochs,
    match_filenames_once,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from runnel.train.lbfgs import LBFGSOptimizer, LBFGSResult
from runnel.train.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from runnel.train.meta_graph import export_meta_graph, import_meta_graph
from runnel.train.momentum import MomentumOptimizer
from runnel.train.monitored_session import MonitoredSession, SingularMonitoredSession
from runnel.train.moving_averages import ExponentialMovingAverage
from runnel.train.optimizer import Optimizer
from runnel.train.profiler_hook import ProfilerHook
from runnel.train.progress_hook import ProgressHook
from runnel.train.queue_checkpoints import checkpoint_input_queues
from runnel.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from runnel.train.rmsprop import RMSPropOptimizer
from runnel.train.safetensors_export import save_safetensors
from runnel.train.saver import Saver
from runnel.train.scaffold import Scaffold
from runnel.train.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from runnel.train.session_manager import SessionManager
from runnel.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from runnel.train.supervisor import Supervisor, basic_train_loop
from runnel.train.sync_replicas import SyncReplicasOptimizer
from runnel.train.training_session import MonitoredTrainingSession
from runnel.train.vocabulary_remap import VocabInfo

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "BytesList",  # noqa: F822 (made by __getattr__)
    "BestSaver",
    "BoundedStalenessOptimizer",
    "CollectiveOptimizer",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "ChiefSessionCreator",
    "ClusterDef",  # noqa: F822
    "ClusterSpec",
    "Coordinator",
    "Example",  # noqa: F822 (made by __getattr__)
    "ExponentialMovingAverage",
    "Feature",  # noqa: F822 (made by __getattr__)
    "FeatureList",  # noqa: F822 (made by __getattr__)
    "FeatureLists",  # noqa: F822 (made by __getattr__)
    "Features",  # noqa: F822 (made by __getattr__)
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",  # noqa: F822 (made by __getattr__)
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",  # noqa: F822 (made by __getattr__)
    "JobDef",  # noqa: F822
    "LBFGSOptimizer",
    "LBFGSResult",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ProfilerHook",
    "ProgressHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "Saver",
    "SaverDef",  # noqa: F822 (made by __getattr__)
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",  # noqa: F822 (made by __getattr__)
    "Server",  # noqa: F822
    "ServerDef",  # noqa: F822
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "SummaryWriter",
    "SummaryWriterCache",
    "Supervisor",
    "SyncReplicasOptimizer",
    "VocabInfo",
    "WorkerSessionCreator",
    "add_queue_runner",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "checkpoint_input_queues",
    "checkpoints_iterator",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "experimental",
    "exponential_decay",
    "export_meta_graph",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "range_input_producer",
    "remove_checkpoint",
    "replica_device_setter",
    "save_safetensors",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]


_EXAMPLES = "runnel.records.example_protos"
_LAZY = {
    **dict.fromkeys(
        ("BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features"), _EXAMPLES
    ),
    **dict.fromkeys(("FloatList", "Int64List", "SequenceExample"), _EXAMPLES),
    "ClusterDef": "tensorboard.compat.proto.cluster_pb2",
    "JobDef": "tensorboard.compat.proto.cluster_pb2",
    "SaverDef": "tensorboard.compat.proto.saver_pb2",
    "Server": "runnel.distributed.server",
    "ServerDef": "runnel.distributed.server_def",
}


def __getattr__(name: str) -> Any:
    """Messages, and what is made of them, loaded when used: protocol buffers take a while."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
