"""The parts of a step on other tasks: what they bring is there before the step is over."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runnel.distributed import wire
from runnel.distributed.messages import PartEnded
from runnel.distributed.step_parts import ClusterStep, StepPart
from runnel.graph import errors


class Watched(ClusterStep):
    """A step that notes whether it was over when something was kept."""

    over: list[bool]

    def _note(self, error, follows):
        self.over.append(self._is_over())
        super()._note(error, follows)


class Values(dict):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def update(self, *given):
        self.step.over.append(self.step._is_over())
        super().update(*given)


@pytest.fixture
def step():
    plan = SimpleNamespace(
        session=None,
        remote=[(StepPart(1, "/job:ps/task:0", (), (7,)), [])],
        find=lambda name: None,
        lost=lambda task, error: error,
    )
    made = Watched(plan, SimpleNamespace(rouse=lambda: None))
    made._values, made.over = Values(made), []
    return made


def test_the_values_of_a_part_are_there_before_the_step_is_over(step):
    step.part_ended(PartEnded(0, 1, 0, 1), ["value"])
    assert step.over == [False] and step._is_over() and step._values == {7: "value"}


def test_so_is_its_failure(step):
    failure = wire.failure_of(errors.InternalError(None, None, "bad"), "/job:ps/task:0")
    step.part_ended(PartEnded(0, 1, 0, failure=failure), [])
    assert step.over == [False] and step._is_over()


def test_so_is_the_loss_of_its_task(step):
    step.task_lost("/job:ps/task:0", errors.UnavailableError(None, None, "gone"))
    assert step.over == [False] and step._is_over()
