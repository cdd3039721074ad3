"""What programs derive their own Savers' parts from."""

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.train.saver_builder import BaseSaverBuilder, BulkSaverBuilder

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder", "SaveSpec", "SaveableObject"]
