"""Generated training programs: layers, tables, control flow and optimizers, put together.

``python -m tests.conformance.generated_training`` runs any number of others.
"""

import pytest

pytest.importorskip("tensorflow")

from tests.conformance.generated_training import check, random_training_program


@pytest.mark.parametrize("seed", range(12))
def test_programs_train_as_tensorflow_trains_them(seed):
    check(random_training_program(seed), ["default"])


@pytest.mark.parametrize("seed", [101])
def test_programs_train_the_same_in_every_tier(seed):
    check(random_training_program(seed))
