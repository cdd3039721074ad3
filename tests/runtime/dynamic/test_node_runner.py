"""What a dynamic step brings to the devices of its stretches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runnel.runtime.dynamic import node_runner
from runnel.runtime.dynamic.node_runner import NodeRunner


class _OnDevice:
    """An array on a device, as far as transfers look at it."""

    def __init__(self, device: str) -> None:
        self.device = device

    def devices(self) -> set[str]:
        return {self.device}


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, str]]:
    """Every transfer that is made, with its destination; devices are their own names."""
    made: list[tuple[Any, str]] = []

    def put(value: Any, target: str) -> _OnDevice:
        made.append((value, target))
        return _OnDevice(target)

    monkeypatch.setattr(node_runner, "xla_device", lambda device: device)
    monkeypatch.setattr(node_runner, "put", put)
    return made


def test_a_value_is_moved_once_to_each_device_that_takes_it(moves):
    unobserved: Any = SimpleNamespace(observer=None)
    runner: Any = NodeRunner(unobserved, None, None, None)  # type: ignore[arg-type]
    weights, first, second = _OnDevice("a"), _OnDevice("a"), _OnDevice("a")
    on_host = np.float32(1.0)
    one, other = SimpleNamespace(inputs=(7, 8, 9)), SimpleNamespace(inputs=(8,))
    for state in (first, second):  # two iterations of a loop
        args = [state, weights, on_host]
        runner._bring(one, "b", args)
        assert [arg.devices() for arg in args[:2]] == [{"b"}, {"b"}] and args[2] is on_host
        again = [weights]
        runner._bring(other, "b", again)
        assert again[0] is args[1]
        runner._bring(other, "c", [weights])
        runner._bring(other, "a", [weights])
    assert moves == [(first, "b"), (weights, "b"), (weights, "c"), (second, "b")]
