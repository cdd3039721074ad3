"""``AudioSummary``: sound, as WAV."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from runnel.ops.summaries.serialized import (
    invalid,
    numbered_tag,
    register_summary_op,
    serialized,
    single,
    summary_class,
    text,
)

_OUTPUTS = "max_outputs: int >= 1 = 3"

audio_summary_op = register_summary_op(
    "AudioSummary",
    inputs="tag: string, tensor: float",
    attrs=["sample_rate: float", _OUTPUTS],
)
audio_summary_v2_op = register_summary_op(
    "AudioSummaryV2", inputs="tag: string, tensor: float, sample_rate: float", attrs=[_OUTPUTS]
)


@audio_summary_op.kernel
def _(xp, tag, tensor, *, sample_rate, max_outputs):
    return _summary(tag, tensor, sample_rate, max_outputs)


@audio_summary_v2_op.kernel
def _(xp, tag, tensor, sample_rate, *, max_outputs):
    return _summary(tag, tensor, single(sample_rate, "sample_rate"), max_outputs)


def _summary(tag: Any, tensor: Any, sample_rate: float, max_outputs: int) -> np.ndarray:
    name = text(single(tag, "tag"))
    clips = np.asarray(tensor)
    if clips.ndim not in (2, 3):
        raise invalid(
            f"Tensor must be 3-D or 2-D, got: {list(clips.shape)}; its axes are clips, frames and, "
            "where there are several, channels"
        )
    if not 0 < sample_rate < 2**32:
        raise invalid(f"sample_rate must be > 0 and less than 2**32, got {sample_rate}")
    clips = clips if clips.ndim == 3 else clips[:, :, None]
    _, frames, channels = clips.shape
    if not frames or not 0 < channels < 2**16:
        raise invalid(
            f"A clip has at least one frame and 1 to 65535 channels, not {frames} frames of "
            f"{channels} channels"
        )
    summary = summary_class()()
    for index, clip in enumerate(clips[:max_outputs]):
        audio = summary.value.add(tag=numbered_tag(name, "audio", index, max_outputs)).audio
        audio.sample_rate = sample_rate
        audio.num_channels, audio.length_frames = channels, frames
        audio.content_type = "audio/wav"
        audio.encoded_audio_string = wav(clip, round(sample_rate))
    return serialized(summary)


def wav(clip: np.ndarray, sample_rate: int) -> bytes:
    """``clip`` (frames, channels), from -1 to 1, as a WAV file of 16 bits a sample."""
    scaled = clip.astype(np.float32) * np.float32(2**15)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves away from zero
    samples = np.clip(np.nan_to_num(rounded, nan=-(2**15)), -(2**15), 2**15 - 1).astype("<i2")
    channels = clip.shape[1]
    frame = 2 * channels
    head = struct.pack("<HHIIHH", 1, channels, sample_rate, sample_rate * frame, frame, 16)
    data = samples.tobytes()
    body = b"WAVE" + _chunk(b"fmt ", head) + _chunk(b"data", data)
    return _chunk(b"RIFF", body)


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content
