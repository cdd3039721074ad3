"""Opening a checkpoint, of whichever format."""

from __future__ import annotations

import glob
import os

from runnel.checkpoint.bundle import BundleReader, index_file
from runnel.checkpoint.safetensors import SUFFIX, SafetensorsReader
from runnel.checkpoint.v1 import V1Reader
from runnel.graph.errors import NotFoundError

CheckpointReader = BundleReader | V1Reader | SafetensorsReader


def checkpoint_exists(prefix: str) -> bool:
    """True when ``prefix`` names a checkpoint of some format; V1 also by a pattern of shards."""
    return os.path.exists(index_file(prefix)) or bool(glob.glob(prefix))


def open_checkpoint(prefix: str) -> CheckpointReader:
    """What reads the checkpoint ``prefix``."""
    if os.path.exists(index_file(prefix)):
        return BundleReader(prefix)
    if prefix.endswith(SUFFIX) and os.path.exists(prefix):
        return SafetensorsReader(prefix)
    if glob.glob(prefix):
        return V1Reader(prefix)
    raise NotFoundError(
        None,
        None,
        f"There is no checkpoint {prefix!r}: neither {index_file(prefix)} exists nor it.",
    )
