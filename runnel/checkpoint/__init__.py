"""Checkpoint files: TensorFlow's formats, read and written without TensorFlow."""
