"""Sound as programs that recognise speech read it: WAV files, spectrograms, cepstra."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import scalar

_RIFF = struct.Struct("<4sI4s")
_CHUNK = struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_PCM = 1
_FULL_SCALE = 1 << 15
_LEAST_ENERGY = 1e-12
"""What a band that is silent has, so that it has a logarithm."""

decode_wav_op = register_op(
    "DecodeWav",
    inputs="contents: string",
    outputs="audio: float, sample_rate: int32",
    attrs=["desired_channels: int = -1", "desired_samples: int = -1"],
    host=True,
    differentiable=False,
)
encode_wav_op = register_op(
    "EncodeWav",
    inputs="audio: float, sample_rate: int32",
    outputs="contents: string",
    host=True,
    differentiable=False,
)
audio_spectrogram_op = register_op(
    "AudioSpectrogram",
    inputs="input: float",
    outputs="spectrogram: float",
    attrs=["window_size: int", "stride: int", "magnitude_squared: bool = false"],
    host=True,
    differentiable=False,
)
mfcc_op = register_op(
    "Mfcc",
    inputs="spectrogram: float, sample_rate: int32",
    outputs="output: float",
    attrs=[
        "upper_frequency_limit: float = 4000.0",
        "lower_frequency_limit: float = 20.0",
        "filterbank_channel_count: int = 40",
        "dct_coefficient_count: int = 13",
    ],
    host=True,
    differentiable=False,
)
encode_wav_op.shape(scalar)


@decode_wav_op.shape
def _(contents, *, desired_channels, desired_samples):
    known = [None if n == -1 else n for n in (desired_samples, desired_channels)]
    return [tuple(known), ()]


@decode_wav_op.kernel
def _(xp, contents, *, desired_channels, desired_samples):
    samples, rate = _read_wav(bytes(np.asarray(contents).item()))
    if desired_samples != -1:
        missing = max(desired_samples - len(samples), 0)
        samples = np.pad(samples[:desired_samples], [(0, missing), (0, 0)])
    if desired_channels != -1:
        missing = max(desired_channels - samples.shape[1], 0)
        samples = np.pad(samples[:, :desired_channels], [(0, 0), (0, missing)], mode="edge")
    return samples, np.int32(rate)


def _read_wav(content: bytes) -> tuple[np.ndarray, int]:
    """The samples of a file, a column for each channel, and how many there are in a second."""
    if len(content) < _RIFF.size:
        raise _bad_wav("it is too short")
    riff, _, wave = _RIFF.unpack_from(content)
    if riff != b"RIFF" or wave != b"WAVE":
        raise _bad_wav("it does not begin with RIFF and WAVE")
    position, channels, rate = _RIFF.size, 0, 0
    while position + _CHUNK.size <= len(content):
        kind, size = _CHUNK.unpack_from(content, position)
        position += _CHUNK.size
        if kind == b"fmt " and size >= _FORMAT.size and position + size <= len(content):
            code, channels, rate, _, _, bits = _FORMAT.unpack_from(content, position)
            if code != _PCM or bits != 16:
                raise _bad_wav(f"its samples are of format {code} and {bits} bits, not 1 and 16")
        elif kind == b"data":
            if not channels:
                raise _bad_wav("its format does not come before its data, or names no channels")
            size = min(size, len(content) - position)
            size -= size % (2 * channels)
            numbers = np.frombuffer(content, "<i2", size // 2, position)
            samples = numbers.reshape(-1, channels).astype(np.float32) / _FULL_SCALE
            return samples, rate
        position += size + size % 2
    raise _bad_wav("it has no data")


def _bad_wav(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"This is no WAV file that can be read: {why}.")


@encode_wav_op.kernel
def _(xp, audio, sample_rate):
    if np.ndim(audio) != 2:
        raise InvalidArgumentError(
            None, None, f"audio must have samples and channels, not the shape {np.shape(audio)}"
        )
    channels, rate = audio.shape[1], int(sample_rate)
    scaled = audio.astype(np.float64) * _FULL_SCALE
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    data = np.clip(rounded, -_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()
    form = _FORMAT.pack(_PCM, channels, rate, 2 * channels * rate, 2 * channels, 16)
    body = _CHUNK.pack(b"fmt ", len(form)) + form + _CHUNK.pack(b"data", len(data)) + data
    return np.array(_RIFF.pack(b"RIFF", len(body) + 4, b"WAVE") + body, object)


@audio_spectrogram_op.shape
def _(input, *, window_size, stride):  # noqa: A002 (TensorFlow's name)
    dims = input.dims or (None, None)
    frames = None if dims[0] is None else _frames(dims[0], window_size, stride)
    return (dims[1], frames, _fft_length(window_size) // 2 + 1)


def _frames(samples: int, window: int, stride: int) -> int:
    return 1 + (samples - window) // stride if samples >= window else 0


def _fft_length(window: int) -> int:
    return 1 << max(window - 1, 1).bit_length()


@audio_spectrogram_op.kernel
def _(xp, samples, *, window_size, stride, magnitude_squared):
    if np.ndim(samples) != 2:
        raise InvalidArgumentError(
            None, None, f"input must have samples and channels, not the shape {np.shape(samples)}"
        )
    count = _frames(len(samples), window_size, stride)
    starts = np.arange(count) * stride
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    framed = samples.T[:, starts[:, None] + np.arange(window_size)] * window
    spectrum = np.fft.rfft(framed, _fft_length(window_size))
    power = spectrum.real**2 + spectrum.imag**2
    return (power if magnitude_squared else np.sqrt(power)).astype(np.float32)


@mfcc_op.shape
def _(spectrogram, sample_rate, *, dct_coefficient_count):
    dims = spectrogram.dims or (None, None, None)
    return (dims[0], dims[1], dct_coefficient_count)


@mfcc_op.kernel
def _(
    xp,
    spectrogram,
    sample_rate,
    *,
    upper_frequency_limit,
    lower_frequency_limit,
    filterbank_channel_count,
    dct_coefficient_count,
):
    if np.ndim(spectrogram) != 3:
        raise InvalidArgumentError(
            None,
            None,
            "spectrogram must have channels, frames and frequencies, not the shape "
            f"{np.shape(spectrogram)}",
        )
    bands = _mel_bands(
        spectrogram.shape[2],
        float(sample_rate),
        filterbank_channel_count,
        lower_frequency_limit,
        upper_frequency_limit,
    )
    energy = np.sqrt(spectrogram.astype(np.float64)) @ bands
    orders = np.arange(dct_coefficient_count)[None, :]
    phases = (np.arange(filterbank_channel_count)[:, None] + 0.5) * np.pi / filterbank_channel_count
    cosines = np.sqrt(2.0 / filterbank_channel_count) * np.cos(phases * orders)
    return (np.log(np.maximum(energy, _LEAST_ENERGY)) @ cosines).astype(np.float32)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(hertz / 700.0)


def _mel_bands(bins: int, rate: float, count: int, lower: float, upper: float) -> np.ndarray:
    """How much of each frequency goes into each band: triangles of equal width in mel."""
    bin_hertz = 0.5 * rate / (bins - 1)
    edges = np.linspace(_mel(lower), _mel(upper), count + 2)
    first, last = int(1.5 + lower / bin_hertz), int(upper / bin_hertz)
    if bins < 2 or last >= bins or not 0 <= lower < upper or count < 1:
        raise InvalidArgumentError(
            None,
            None,
            f"{bins} frequencies up to {rate / 2:g} Hz have no {count} bands from {lower:g} to "
            f"{upper:g} Hz",
        )
    weights = np.zeros([bins, count])
    places = np.arange(first, last + 1)
    mels = _mel(places * bin_hertz)
    left = np.clip(np.searchsorted(edges, mels, side="left") - 1, 0, count)
    falling = (edges[left + 1] - mels) / (edges[left + 1] - edges[left])
    has_left, has_right = left > 0, left < count
    weights[places[has_left], left[has_left] - 1] += falling[has_left]
    weights[places[has_right], left[has_right]] += 1.0 - falling[has_right]
    return weights


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """(``audio``, ``sample_rate``) of a WAV file of 16 bits: numbers from -1 to 1, by channel.

    Where fewer samples are there than desired zeros follow; fewer channels, copies of the last.
    """
    return decode_wav_op(
        contents, desired_channels=desired_channels, desired_samples=desired_samples, name=name
    )


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """A WAV file of 16 bits of ``audio``: numbers from -1 to 1, [samples, channels]."""
    return encode_wav_op(audio, sample_rate, name=name)


def audio_spectrogram(
    input: Any,  # noqa: A002 (TensorFlow's name)
    window_size: int,
    stride: int,
    magnitude_squared: bool = False,
    name: str | None = None,
) -> Tensor:
    """How strong each frequency is in windows of the samples, [channels, windows, frequencies]."""
    return audio_spectrogram_op(
        input,
        window_size=window_size,
        stride=stride,
        magnitude_squared=magnitude_squared,
        name=name,
    )


def mfcc(
    spectrogram: Any,
    sample_rate: Any,
    upper_frequency_limit: float = 4000,
    lower_frequency_limit: float = 20,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
    name: str | None = None,
) -> Tensor:
    """Mel-frequency cepstral coefficients of a spectrogram of squared magnitudes."""
    return mfcc_op(
        spectrogram,
        sample_rate,
        upper_frequency_limit=float(upper_frequency_limit),
        lower_frequency_limit=float(lower_frequency_limit),
        filterbank_channel_count=filterbank_channel_count,
        dct_coefficient_count=dct_coefficient_count,
        name=name,
    )
