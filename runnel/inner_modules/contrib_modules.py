"""The modules inside the packages of ``tensorflow.contrib``, and who has their names."""

from __future__ import annotations

_INSIDE = {
    "crf": {"python.ops": "crf"},
    "cudnn_rnn": {"python.layers": "cudnn_rnn", "python.ops": "cudnn_rnn_ops"},
    "data": {"python.ops": "batching error_ops grouping interleave_ops readers scan_ops sliding"},
    "distributions": {
        "python.ops": (
            "bijectors binomial cauchy chi2 deterministic distribution_util geometric half_normal "
            "independent inverse_gamma logistic mixture mixture_same_family mvn_diag mvn_tril "
            "mvn_full_covariance negative_binomial onehot_categorical poisson "
            "quantized_distribution relaxed_bernoulli relaxed_onehot_categorical"
        ),
    },
    "framework": {
        "python.framework": "checkpoint_utils tensor_util",
        "python.ops": "arg_scope audio_ops variables ops",
    },
    "image": {"python.ops": "image_ops dense_image_warp distort_image_ops"},
    "resampler": {"python.ops": "resampler_ops"},
    "integrate": {"python.ops": "odes"},
    "layers": {
        "python.layers": (
            "embedding_ops feature_column feature_column_ops initializers layers normalization "
            "optimizers regularizers rev_block_lib summaries utils"
        ),
        "python.ops": "sparse_feature_cross_op",
    },
    "learn": {
        "python.learn": (
            "basic_session_run_hooks datasets estimators experiment export_strategy learn_runner "
            "metric_spec models monitors preprocessing session_run_hook utils"
        ),
        "python.learn.datasets": "base mnist text_datasets",
        "python.learn.estimators": (
            "constants dnn dnn_linear_combined estimator head linear metric_key model_fn "
            "prediction_key run_config"
        ),
        "python.learn.preprocessing": "text",
        "python.learn.utils": "input_fn_utils saved_model_export_utils",
    },
    "legacy_seq2seq": {"python.ops": "seq2seq"},
    "lookup": {"": "lookup_ops"},
    "losses": {"python.losses": "loss_ops", "python.metric_learning": "metric_loss_ops"},
    "metrics": {"python.ops": "metric_ops"},
    "opt": {
        "python.training": (
            "adamax external_optimizer lars_optimizer lazy_adam_optimizer moving_average_optimizer "
            "multitask_optimizer_wrapper nadam_optimizer variable_clipping_optimizer "
            "weight_decay_optimizers"
        ),
    },
    "rnn": {
        "": "core_rnn_cell",
        "python.ops": (
            "core_rnn core_rnn_cell core_rnn_cell_impl fused_rnn_cell gru_ops lstm_ops rnn rnn_cell"
        ),
    },
    "seq2seq": {
        "python.ops": (
            "attention_wrapper basic_decoder beam_search_decoder beam_search_ops decoder helper "
            "loss"
        ),
    },
    "signal": {
        "python.ops": "mel_ops mfcc_ops reconstruction_ops shape_ops spectral_ops window_ops"
    },
    "slim": {
        "python.slim": "evaluation learning model_analyzer queues summaries",
        "python.slim.data": (
            "data_decoder data_provider dataset dataset_data_provider parallel_reader "
            "prefetch_queue tfexample_decoder"
        ),
    },
    "tpu": {
        "python.tpu": "tpu_config tpu_estimator tpu_function tpu_optimizer",
    },
    "training": {
        "python.training": (
            "bucket_ops device_setter evaluation hparam resample sampling_ops "
            "sequence_queueing_state_saver training"
        ),
    },
}
"""For each package, the modules of its folders."""

_ALSO = {
    "contrib.framework": ("audio", "python.generated"),
    "contrib.layers": ("layers", "feature_column", "ops.strings.feature_crosses"),
    "contrib.distributions": ("contrib.distributions.bijectors",),
    "contrib.learn": (
        "contrib.learn.datasets.mnist",
        "contrib.learn.datasets.base",
        "contrib.learn.preprocessing",
        "contrib.learn.serving",
        "estimator",
        "train",
    ),
    "contrib.losses": ("contrib.losses.metric_learning",),
    "contrib.rnn": ("contrib.rnn.core_linear", "nn.rnn_cell", "nn"),
    "contrib.slim": ("contrib.slim.data",),
    "contrib.training": ("train",),
}
"""Where else the names of a package's modules are: TensorFlow's import what they build on."""


_NETWORKS = (
    "alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils resnet_v1 "
    "resnet_v2 vgg"
)
"""The modules of ``slim.nets``."""


def _modules() -> dict[str, tuple[str, ...]]:
    found = {}
    for package, folders in _INSIDE.items():
        public = f"contrib.{package}"
        for folder, names in folders.items():
            for name in names.split():
                namespaces = (public, *_ALSO.get(public, ()))
                if folder:  # a module of runnel's may have the same name
                    found[f"{package}.{folder}.{name}"] = (f"{public}.{name}", *namespaces)
                else:
                    found[f"{package}.{name}"] = namespaces
    # A folder of layers has the names of its modules too.
    found["layers.python.layers"] = ("contrib.layers",)
    found["framework.python.ops"] = ("contrib.framework",)
    found["slim.python.slim.nets"] = ("contrib.slim.nets",)
    for name in _NETWORKS.split():
        found[f"slim.python.slim.nets.{name}"] = (f"contrib.slim.nets.{name}", "contrib.slim")
    return found


MODULES: dict[str, tuple[str, ...]] = _modules()
"""The namespaces that are asked for a module's names, in turn."""
