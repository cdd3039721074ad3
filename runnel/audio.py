"""``tf.audio``: WAV files."""

from runnel.ops.spectral.audio import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]
