"""What a serialized Summary says, in plain values: two with the same meaning are equal."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image
from tensorboard.compat.proto.summary_pb2 import Summary

import runnel


def meaning(serialized: bytes) -> list[dict[str, Any]]:
    """The values of a summary; images are decoded, tensors are arrays."""
    return [value_meaning(value) for value in Summary.FromString(serialized).value]


def value_meaning(value: Any) -> dict[str, Any]:
    """One value of a summary."""
    kind = value.WhichOneof("value")
    found: dict[str, Any] = {
        "tag": value.tag,
        "node": value.node_name,
        "kind": kind,
        "metadata": value.metadata if value.HasField("metadata") else None,
    }
    if kind == "simple_value":
        found["value"] = repr(value.simple_value)  # NaN is NaN
    elif kind == "histo":
        found["value"] = value.histo.SerializeToString()
    elif kind == "image":
        image = value.image
        with Image.open(io.BytesIO(image.encoded_image_string)) as picture:
            pixels = (picture.mode, np.asarray(picture).tolist())
        found["value"] = (image.height, image.width, image.colorspace, pixels)
    elif kind == "audio":
        found["value"] = value.audio
    elif kind == "tensor":
        array = runnel.make_ndarray(value.tensor)
        found["value"] = (value.tensor.dtype, array.shape, array.tolist())
    return found
