"""Generated programs of conditionals and loops, with first and second derivatives.

``python -m tests.conformance.generated_control_flow`` runs any number of others.
"""

import pytest

pytest.importorskip("tensorflow")

from tests.conformance.generated_control_flow import check
from tests.control_flow_programs.outcomes import INTERPRETED, WAYS
from tests.control_flow_programs.program import given_program, random_program, statement


@pytest.mark.parametrize("seed", range(120))
def test_interpreted_programs_give_what_tensorflow_gives(seed):
    check(random_program(seed), INTERPRETED)


# The last two have failed before.
@pytest.mark.parametrize("seed", [*range(1000, 1030), 77090, 77157])
def test_programs_give_what_tensorflow_gives_in_every_tier(seed):
    check(random_program(seed), WAYS)


LOOP = "tf.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, tf.sin(a) * a], [0, x])[1]"
FORMS = {
    "a gradient of a loop that is taken in a branch": (
        statement("t", LOOP, traced=True),
        statement("u", "tf.cond(p, t_slope, lambda: x)"),
    ),
    "a gradient of a loop that is taken in a branch, with its value": (
        statement("t", LOOP, traced=True),
        statement("u", "t + tf.cond(p, t_slope, lambda: x)"),
    ),
    "a conditional in a branch whose shapes are computed on the host": (
        statement(
            "t",
            "tf.cond(p, lambda: tf.boolean_mask(x, [True, True]) * "
            "tf.cond(q, lambda: tf.sin(x) * x, lambda: x), lambda: x)",
        ),
    ),
    "a conditional in a branch that gives scalars": (
        statement(
            "t",
            "tf.cond(p, lambda: tf.cond(q, lambda: tf.reduce_mean(x * x), "
            "lambda: tf.reduce_mean(x)), lambda: tf.reduce_sum(x))",
        ),
    ),
    "a conditional that is decided, in a branch, beside a loop that looks at the same": (
        statement(
            "t",
            "tf.while_loop(lambda i, a: tf.logical_and(i < 4, tf.reduce_sum(a) < tf.cond(q, "
            "lambda: c, lambda: tf.reduce_sum(x))), lambda i, a: [i + 1, tf.tanh(a) + 0.4], "
            "[0, x])[1]",
        ),
        statement(
            "u",
            "tf.case([(c > 0.1, lambda: t), (q, lambda: sorted_rows(t))], default=lambda: t)",
        ),
    ),
    "a part of what a loop gives": (statement("t", f"tf.slice({LOOP}, [0, 1], [1, 2])"),),
    "what a loop gives with a border": (statement("t", f"tf.pad({LOOP}, [[0, 0], [1, 0]])"),),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, None), None])
def test_forms_that_have_failed_before(form, shape):
    feeds = [(True, False, 2), (False, True, 0), (True, True, 1)]
    check(given_program(FORMS[form], shape, feeds))
