"""``tf.contrib.staging``: tuples of tensors that wait between two steps."""

from runnel.ops.queues.staging import MapStagingArea, StagingArea

__all__ = ["MapStagingArea", "StagingArea"]
