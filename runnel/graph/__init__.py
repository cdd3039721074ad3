"""The description layer: graphs, operations, tensors, types, shapes. Knows nothing of execution."""
