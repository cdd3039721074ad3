"""The first format of checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.checkpoint.reading import open_checkpoint
from runnel.checkpoint.tensor_slice import TensorSlice
from runnel.checkpoint.v1 import V1Reader, V1Writer
from runnel.graph import dtypes
from runnel.graph.errors import InvalidArgumentError, NotFoundError, OpError
from tests.checkpoint.test_bundle import TYPES, values


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_what_is_written_is_read(tmp_path, dtype):
    path = str(tmp_path / "model.ckpt")
    written = {
        "scalar": values(dtype, ()),
        "empty": values(dtype, (0, 2)),
        "m": values(dtype, (3, 4)),
    }
    with V1Writer(path) as writer:
        for name, array in written.items():
            writer.add(name, array, dtype)
    reader = open_checkpoint(path)
    assert isinstance(reader, V1Reader)
    assert reader.names() == sorted(written)
    for name, array in written.items():
        assert reader.type_and_shape(name) == (dtype, array.shape)
        np.testing.assert_array_equal(reader.tensor(name), array)


def test_shards_are_read_as_one(tmp_path):
    whole = np.arange(12.0).reshape(6, 2)
    for shard in range(2):
        with V1Writer(str(tmp_path / f"m-{shard:05d}-of-00002")) as writer:
            part = TensorSlice(((3 * shard, 3), (0, None)))
            writer.add_slice("v", (6, 2), part, whole[3 * shard :][:3], dtypes.float64)
    reader = V1Reader(str(tmp_path / "m-?????-of-00002"))
    np.testing.assert_array_equal(reader.tensor("v"), whole)
    np.testing.assert_array_equal(reader.slice("v", TensorSlice.parse("2,3:1,1")), whole[2:5, 1:])
    with pytest.raises(InvalidArgumentError, match="of the"):
        V1Reader(str(tmp_path / "m-00000-of-00002")).tensor("v")
    with pytest.raises(NotFoundError):
        reader.tensor("w")


def test_a_changed_byte_is_an_error_of_ours_or_harmless(tmp_path):
    path = tmp_path / "m"
    with V1Writer(str(path)) as writer:
        writer.add("v", np.arange(20.0), dtypes.float64)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = V1Reader(str(path)).tensor("v")
        except OpError:
            continue
        np.testing.assert_array_equal(found, np.arange(20.0))
