"""Event files: what TensorBoard reads, in TensorFlow's format for records."""
