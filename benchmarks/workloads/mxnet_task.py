"""One task of the training of `cluster_training` in MXNet 1.9.1, whose newest Python is 3.8.

`cluster_training_mxnet` starts it by an interpreter of its own, with a file of the parameters and
the batches, and tells it a number of steps a line. The server applies by SGD what workers push:
when it comes (`dist_async`), or when it has come from all of them (`dist_sync`).
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy as np

TABLE = "p0"
"""The parameter of the embedding model that is a table of rows."""


class Worker:
    """Computes gradients of a bound symbol, and exchanges them with the server."""

    def __init__(self, model: str, synchronous: bool, file: str, index: int) -> None:
        import mxnet as mx

        self._mx = mx
        with np.load(file) as given:
            arrays = dict(given)
        self._sparse = model == "embedding"
        self._store = mx.kv.create("dist_sync" if synchronous else "dist_async")
        first, second = arrays[f"inputs_{index}"], arrays[f"wanted_{index}"]
        self._data = list(zip(first, second))
        self._next = 0
        values = {name: value for name, value in arrays.items() if name.startswith("p")}
        self._bound = (_embedding if self._sparse else _perceptron)(mx, values).simple_bind(
            mx.cpu(),
            grad_req={
                **dict.fromkeys(["inputs", "wanted"], "null"),
                **dict.fromkeys(values, "write"),
            },
            type_dict={"inputs": first.dtype, "wanted": second.dtype},
            inputs=first.shape[1:],
            wanted=second.shape[1:],
        )
        self._names = sorted(values)
        for name in self._names:
            value = mx.nd.array(values[name])
            self._store.init(name, value.tostype("row_sparse") if self._is_table(name) else value)
        workers = self._store.num_workers
        self._store.set_optimizer(
            mx.optimizer.SGD(
                learning_rate=float(arrays["rate"]),
                rescale_grad=1 / workers if synchronous else 1.0,
            )
        )

    def _is_table(self, name: str) -> bool:
        return self._sparse and name == TABLE

    def _pull(self) -> None:
        """Feeds the next batch, and asks for the parameters that it needs."""
        inputs, wanted = self._data[self._next % len(self._data)]
        self._next += 1
        arguments = self._bound.arg_dict
        arguments["inputs"][:] = inputs
        arguments["wanted"][:] = wanted
        for place, name in enumerate(self._names):
            if self._is_table(name):
                self._store.row_sparse_pull(
                    name,
                    out=arguments[name],
                    priority=-place,
                    row_ids=arguments["inputs"].reshape((-1,)),
                )
            else:
                self._store.pull(name, out=arguments[name], priority=-place)

    def run(self, steps: int) -> float:
        """Trains for so many steps; the loss of the last."""
        for _ in range(steps):
            self._pull()
            outputs = self._bound.forward(is_train=True)
            self._bound.backward()
            for place, name in enumerate(self._names):
                self._store.push(name, self._bound.grad_dict[name], priority=-place)
            loss = float(outputs[0].asnumpy().item())
        self._mx.nd.waitall()
        return loss


def _perceptron(mx: Any, values: dict[str, np.ndarray]) -> Any:
    hidden = mx.sym.var("inputs")
    layers = len(values) // 2
    for layer in range(layers):
        weight, bias = (
            mx.sym.var(f"p{number}", shape=values[f"p{number}"].shape)
            for number in (2 * layer, 2 * layer + 1)
        )
        hidden = mx.sym.broadcast_add(mx.sym.dot(hidden, weight), bias)
        if layer < layers - 1:
            hidden = mx.sym.relu(hidden)
    chances = mx.sym.pick(mx.sym.log_softmax(hidden), mx.sym.var("wanted"))
    return mx.sym.make_loss(-mx.sym.mean(chances))


def _embedding(mx: Any, values: dict[str, np.ndarray]) -> Any:
    rows, units = values[TABLE].shape
    table = mx.sym.var(TABLE, shape=(rows, units), stype="row_sparse")
    weights = mx.sym.var("p1", shape=values["p1"].shape)
    found = mx.sym.Embedding(
        mx.sym.var("inputs"), table, input_dim=rows, output_dim=units, sparse_grad=True
    )
    found = mx.sym.reshape(mx.sym.dot(mx.sym.sum(found, axis=1), weights), shape=(-1,))
    return mx.sym.make_loss(mx.sym.mean(mx.sym.square(found - mx.sym.var("wanted"))))


def main() -> None:
    """The scheduler, the server or a worker, as `DMLC_ROLE` says; ends with its input."""
    if os.environ["DMLC_ROLE"] != "worker":
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        import mxnet  # noqa: F401 - runs the scheduler or the server

        return
    model, synchronous, file, index = sys.argv[1:]
    worker = Worker(model, synchronous == "True", file, int(index))
    for line in sys.stdin:
        print(worker.run(int(line)), flush=True)
    os._exit(0)  # without waiting for the others, as MXNet would


if __name__ == "__main__":
    main()
