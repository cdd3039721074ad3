"""From a device's memory to another task: as values leave today, and by way of pinned memory.

`PYTHONPATH=. python3 -m benchmarks.device_to_wire` prints medians, for arrays that are new each
time, on JAX's first device. A GPU is needed to learn anything; on a CPU it shows that all ways give
the same bytes. `asarray` is how values leave; `pinned` moves them to memory of the kind
`pinned_host` first and looks at them there.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np

from runnel.distributed.messages import Bundle
from runnel.distributed.transport.connection import Connection
from runnel.distributed.transport.stream import PlainStream

SIZES = (1, 16, 256)
"""Megabytes."""


def _by_asarray(value: Any) -> Any:
    value.copy_to_host_async()
    return np.asarray(value)


def _by_pinned_memory(value: Any) -> Any:
    import jax

    (device,) = value.devices()
    pinned = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    return np.asarray(jax.device_put(value, pinned))


def _by_pinned_dlpack(value: Any) -> Any:
    import jax

    (device,) = value.devices()
    pinned = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    return np.from_dlpack(jax.device_put(value, pinned).block_until_ready())


WAYS: dict[str, Callable[[Any], Any]] = {
    "asarray": _by_asarray,
    "pinned": _by_pinned_memory,
    "pinned, dlpack": _by_pinned_dlpack,
}


def main() -> None:
    """Prints a row for each size and way: to the host, and with the way to another task."""
    import jax

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    arrived: Queue[Any] = Queue()
    sides = [
        Connection(
            PlainStream(sock),
            lambda connection, message, values: arrived.put(values),
            lambda *_: None,
            1 << 40,
        )
        for sock in socket.socketpair()
    ]
    for side in sides:
        side.start()
    device = jax.devices()[0]
    print(f"JAX {jax.__version__}, {device.device_kind}")
    for megabytes in SIZES:
        host = np.random.default_rng(0).normal(size=megabytes << 18).astype(np.float32)
        source = jax.device_put(host, device)
        fresh = jax.jit(lambda x: x + 0.0)
        for name, way in WAYS.items():
            to_host, to_task = [], []
            try:
                for number in range(rounds + 3):
                    value = fresh(source).block_until_ready()  # JAX keeps a copy with an array
                    begun = time.perf_counter()
                    found = way(value)
                    came = time.perf_counter()
                    sides[0].send(Bundle(1, 2, number, (("key", 1),)), [found])
                    [read] = arrived.get(timeout=60)
                    ended = time.perf_counter()
                    if number == 0:
                        np.testing.assert_array_equal(read, host)
                    del read, found
                    if number >= 3:
                        to_host.append(came - begun)
                        to_task.append(ended - begun)
                    sides[1].send(Bundle(1, 2, number, ()))  # gives the block back
                    arrived.get(timeout=60)
            except Exception as error:  # noqa: BLE001 (not every JAX has every way)
                print(f"{megabytes:4} MB  {name:15} {type(error).__name__}: {error}"[:120])
                continue
            rate = megabytes / 1024 / statistics.median(to_host)
            print(
                f"{megabytes:4} MB  {name:15} to the host "
                f"{1e3 * statistics.median(to_host):8.3f} ms ({rate:5.1f} GB/s), to another task "
                f"{1e3 * statistics.median(to_task):8.3f} ms"
            )
    for side in sides:
        side.close("done")
    for thread in threading.enumerate():
        if thread.name.startswith("runnel-"):
            thread.join(5)


if __name__ == "__main__":
    main()
