"""``tf.contrib.slim``: layers, arguments, variables, losses and training under one name."""

from runnel.contrib import framework as _framework
from runnel.contrib import layers as _layers
from runnel.contrib import losses, metrics
from runnel.contrib.framework import *  # noqa: F403
from runnel.contrib.layers import *  # noqa: F403
from runnel.contrib.slim import (
    data_provider,
    dataset,
    dataset_data_provider,
    evaluation,
    learning,
    model_analyzer,
    nets,
    parallel_reader,
    prefetch_queue,
    queues,
    tfexample_decoder,
)

_PARTS = {
    "data_provider": data_provider,
    "dataset": dataset,
    "dataset_data_provider": dataset_data_provider,
    "evaluation": evaluation,
    "learning": learning,
    "losses": losses,
    "metrics": metrics,
    "model_analyzer": model_analyzer,
    "nets": nets,
    "parallel_reader": parallel_reader,
    "prefetch_queue": prefetch_queue,
    "queues": queues,
    "tfexample_decoder": tfexample_decoder,
}

__all__ = sorted({*_framework.__all__, *_layers.__all__, *_PARTS})


def __dir__() -> list[str]:
    return __all__
