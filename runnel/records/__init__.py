"""Record files: TensorFlow's framing with checksums, and the messages that are kept in them."""
