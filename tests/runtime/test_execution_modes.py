"""Generated programs give the same values and gradients in every way in which a step can run."""

import pytest

from tests.control_flow_programs.outcomes import WAYS, graph_of, require_same
from tests.control_flow_programs.program import random_program


@pytest.mark.parametrize("seed", range(20))
def test_generated_programs_agree_in_every_mode(seed):
    outcome = graph_of(random_program(seed))
    first, *others = WAYS
    expected = outcome(first)
    for way in others:
        require_same(outcome(way), expected)
