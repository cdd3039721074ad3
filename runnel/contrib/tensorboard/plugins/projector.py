"""The embedding projector: which tensors TensorBoard shows as clouds of points."""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format
from tensorboard.plugins.projector.metadata import PROJECTOR_FILENAME
from tensorboard.plugins.projector.projector_config_pb2 import (
    EmbeddingInfo,
    ProjectorConfig,
    SpriteMetadata,
)

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Writes ``config`` to where TensorBoard finds it: the folder of a ``FileWriter``, or a path.

    Example:
        >>> config = projector.ProjectorConfig()
        >>> embedding = config.embeddings.add()
        >>> embedding.tensor_name = words.name
        >>> embedding.metadata_path = "words.tsv"
        >>> projector.visualize_embeddings(writer, config)
    """
    folder = summary_writer
    if hasattr(summary_writer, "get_logdir"):
        folder = summary_writer.get_logdir()
    if folder is None:
        raise ValueError("Expected logdir to be a path, but got None")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, PROJECTOR_FILENAME), "w", encoding="utf-8") as file:
        file.write(text_format.MessageToString(config))


def __dir__() -> list[str]:
    return __all__
