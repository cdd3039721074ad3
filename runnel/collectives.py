"""``tf.collectives``: values that a group of devices, on one task or on many, makes together."""

from runnel.ops.collectives import all_gather as all_gather
from runnel.ops.collectives import all_reduce as all_reduce
from runnel.ops.collectives import broadcast_recv as broadcast_recv
from runnel.ops.collectives import broadcast_send as broadcast_send
