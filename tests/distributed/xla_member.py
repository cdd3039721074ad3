"""A worker whose server joins XLA's collectives; runs what it is told, a line of JSON at a time."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import numpy as np

import runnel as tf


def written(array: Any) -> list[Any]:
    """An array as JSON has it: its type, its shape, its bits."""
    array = np.asarray(array)
    return [tf.as_dtype(array.dtype).name, list(array.shape), array.tobytes().hex()]


def read(content: list[Any]) -> np.ndarray:
    """The array of :func:`written`."""
    dtype, shape, bits = content
    return np.frombuffer(bytes.fromhex(bits), tf.as_dtype(dtype).as_numpy_dtype).reshape(shape)


def described(told: dict[str, Any]) -> Any:
    """The tensor of a collective; ``told`` has the arguments of its function."""
    what = told.pop("what")
    if what != "broadcast_recv":
        told["t"] = tf.placeholder_with_default(read(told.pop("value")), None)
    return getattr(tf.collectives, what)(**told)


def main() -> None:
    spec, index = json.loads(sys.argv[1]), int(sys.argv[2])
    config = tf.ConfigProto()
    config.experimental.collective_nccl = True
    server = tf.train.Server(spec, "worker", index, config=config)
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        options = tf.RunOptions(timeout_in_ms=told.pop("milliseconds", 0))
        try:
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
                fetches = [described({"group_size": 2, **each}) for each in told["calls"]]
                with tf.Session(server.target) as sess:
                    found = sess.run(fetches, options=options)
                    if "times" in told:
                        print("under way", flush=True)
                    for _ in range(told.get("times", 1) - 1):
                        found = sess.run(fetches, options=options)
            print(json.dumps({"values": [written(each) for each in found]}), flush=True)
        except tf.errors.OpError as error:
            print(json.dumps({"error": [type(error).__name__, str(error)]}), flush=True)
    server.stop()
    for thread in threading.enumerate():
        if thread.name == "runnel-xla":
            thread.join(30)
            assert not thread.is_alive(), "it is still in an exchange"


if __name__ == "__main__":
    main()
