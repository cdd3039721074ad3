"""The page of the evaluation: from kept results to calibrated costs, tables and pictures.

The results here were not measured: they are what workers and servers of known costs would have
shown, so that it is known what calibrating has to find.
"""

from __future__ import annotations

import doctest
import json
import re
from dataclasses import asdict
from xml.etree import ElementTree

import pytest

from benchmarks.evaluation import drawings, fleet, page, pictures
from benchmarks.evaluation.calibration import asynchronous_costs, spread_over, synchronous_costs
from benchmarks.evaluation.fleet import Observation
from benchmarks.evaluation.predictions import Evaluation
from benchmarks.evaluation.simulation import Layout, StepCosts, simulate

CORES = 2
ASYNCHRONOUS = StepCosts(worker=0.004, server=0.002, latency=0.003)
SYNCHRONOUS = StepCosts(worker=0.004, server=0.002, update=0.003, chief=0.001, latency=0.003)
SIZES = (1, 4)
"""Sizes of the simulated cluster, small enough for a test."""


def observed(costs, workers, servers=2, aggregated=None, wait=0.0, others=0.0):
    """What a fleet of such costs shows."""
    layout = Layout(workers, servers, CORES - others, aggregated=aggregated)
    run = simulate(costs, layout, lambda worker: wait, steps=60)
    updates = run.updates_per_second if aggregated else 0.0
    rate = run.steps_per_second
    cpu = [costs.worker * rate / workers] * workers
    cpu[0] += costs.chief * updates
    server = costs.server * rate + costs.update * updates
    return Observation(
        workers=workers,
        servers=servers,
        seconds=1e3,
        steps=round(1e3 * rate),
        durations=(run.median_step,) * 4,
        updates=updates,
        update_time=1 / updates if updates else 0.0,
        worker_cpu=cpu,
        server_cpu=[server] * servers,
        others_cpu=others,
        waits=[wait] if wait else [],
    )


def stored(*args, **options):
    return asdict(observed(*args, **options))


def content():
    """Kept results with every part."""
    counts = (1, 2, 4)
    null = {
        "servers": 2,
        "curves": [
            {
                "kind": kind,
                "megabytes": megabytes,
                "observed": {
                    name: [stored(costs, n, aggregated=n) for n in counts]
                    for name in ("runnel", "tensorflow")
                },
            }
            for kind, megabytes, costs in (
                ("scalar", 0, SYNCHRONOUS),
                ("dense", 10, StepCosts(0.02, 0.01, 0.0)),
            )
        ],
    }
    training = {
        "servers": 2,
        "curves": [
            {
                "synchronous": synchronous,
                "accelerator": bool(wait),
                "observed": {
                    "runnel": [
                        stored(
                            SYNCHRONOUS if synchronous else ASYNCHRONOUS,
                            n,
                            aggregated=n if synchronous else None,
                            wait=wait,
                        )
                        for n in counts
                    ]
                },
            }
            for synchronous in (False, True)
            for wait in (0.05, 0.0)
        ],
    }
    backup = [{"backups": b, **stored(SYNCHRONOUS, 3 + b, 2, 3, wait=0.05)} for b in (0, 1)]
    words = [
        {
            "sampled": sampled,
            "workers": 1,
            "observed": [stored(ASYNCHRONOUS, 1, servers) for servers in (1, 2)],
        }
        for sampled in (True, False)
    ]
    curve = [(0.1, 1, 2.0), (1.0, 20, 0.5), (2.0, 40, 0.2)]
    return {
        "machine": {
            "cores": CORES,
            "cpu": "a processor",
            "memory_gib": 4,
            "system": "Linux",
            "python": "3.11",
            "versions": {"runnel": "1"},
        },
        "measured": "2026-01-02T03:04:05",
        "notes": [],
        "parts": {
            "figure6": null,
            "figure7": training,
            "figure8": {"servers": 2, "replicas": 3, "observed": backup},
            "figure9": {"curves": words},
            "recovery": {"kills": [{"victim": "ps:0", "standstill": 1.5, "back": 2.25, "lost": 7}]},
            "staleness": {"curves": [{"bound": b, "points": curve} for b in (0.0, None)]},
            "elasticity": {
                "runs": [
                    {
                        "coordination": "async",
                        "points": [(0.5 * k, 10 * k) for k in range(12)],
                        "events": [(2.0, "a worker joins")],
                    }
                ]
            },
        },
    }


@pytest.fixture(scope="module")
def results():
    # Through JSON, as they are kept.
    return json.loads(json.dumps(content()))


@pytest.fixture(scope="module")
def evaluation(results):
    return Evaluation(results, SIZES)


# Calibrating ----------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0.0, 0.6])
def test_calibrating_finds_the_costs_of_asynchronous_steps(others):
    seen = [observed(ASYNCHRONOUS, n, wait=0.05, others=others) for n in (1, 2)]
    found = asynchronous_costs(seen, CORES, 0.0)
    assert found.worker == pytest.approx(ASYNCHRONOUS.worker, rel=0.01)
    assert found.server == pytest.approx(ASYNCHRONOUS.server, rel=0.01)
    assert found.latency == pytest.approx(ASYNCHRONOUS.latency, rel=0.05)
    assert found.first == found.update == found.chief == 0.0


def test_calibrating_tells_the_cost_of_an_update_from_that_of_a_step():
    seen = [observed(SYNCHRONOUS, n, aggregated=n, wait=0.05) for n in (1, 2)]
    found = synchronous_costs(*seen, CORES, 0.0)
    for name in ("worker", "server", "update", "chief"):
        assert getattr(found, name) == pytest.approx(getattr(SYNCHRONOUS, name), rel=0.02), name


def test_the_simulation_of_its_own_results_is_right_at_every_size(evaluation):
    predictions = evaluation.predictions()
    assert {one.calibrating for one in predictions} == {True, False}
    for one in predictions:
        if "softmax" not in one.what:  # its costs are the same on any number of servers
            assert abs(one.error) < 0.15, one


def test_more_servers_divide_the_bytes_and_not_the_messages():
    costs = StepCosts(worker=1.0, server=0.5, traffic=100.0)
    message = StepCosts(worker=1.0, server=0.1)
    spread = spread_over(costs, 2, 8, message)
    assert spread.server == pytest.approx(0.1 + 0.4 * 2 / 8)
    assert spread.traffic == 25.0
    assert spread.worker == costs.worker


# The page -------------------------------------------------------------------------------------


def test_the_page_has_a_place_for_every_part_and_no_other():
    names = [match["name"] for match in page.MARKED.finditer(page.PAGE.read_text())]
    assert sorted(names) == sorted(page.BODIES)


def test_writing_fills_the_markers_keeps_the_prose_and_can_be_done_again(results, tmp_path):
    path = tmp_path / "evaluation.md"
    places = "".join(
        f"\nprose on {name}\n<!-- evaluation:{name} -->\nold\n<!-- /evaluation -->\n"
        for name in page.BODIES
    )
    path.write_text(places)
    page.write(results, path, SIZES)
    text = path.read_text()
    assert "\nold\n" not in text
    for name in page.BODIES:
        assert f"prose on {name}\n" in text
    linked = set(re.findall(r"\]\((figures/[\w-]+\.svg)\)", text))
    assert linked == {f"figures/{file.name}" for file in (tmp_path / "figures").iterdir()}
    assert "| the parameter server (ps:0) | 1 | 1.5 | 2.25 | 7 |" in text
    assert "| s = ∞ | 20 | 2.0 | 40 | 0.200 |" in text
    page.write(results, path, SIZES)
    assert path.read_text() == text


def test_a_part_without_results_stays_as_it_is(results):
    some = {**results, "parts": {"recovery": results["parts"]["recovery"]}}
    before = "<!-- evaluation:figure6 -->\nearlier\n<!-- /evaluation -->\n"
    assert page.filled(before, Evaluation(some, SIZES)) == before


@pytest.mark.parametrize(("others", "told"), [(0.1, False), (1.2, True)])
def test_the_page_says_when_others_used_the_machine(results, others, told):
    changed = json.loads(json.dumps(results))
    for observed in page._observations(changed["parts"]):
        observed["others_cpu"] = others
    text = page.BODIES["machine"](Evaluation(changed, SIZES))
    assert f"took {others:g} of the 2 cores" in text
    assert ("The machine was busy" in text) == told


def test_an_unknown_part_of_the_page_is_an_error(evaluation):
    with pytest.raises(ValueError, match="'figure5'; there are machine"):
        page.filled("<!-- evaluation:figure5 -->\n<!-- /evaluation -->", evaluation)


def test_every_table_has_as_many_cells_in_each_row(evaluation):
    for name, body in page.BODIES.items():
        for block in body(evaluation).split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            assert len({line.count("|") for line in lines}) <= 1, name


# Pictures -------------------------------------------------------------------------------------


def test_pictures_are_well_formed_and_draw_inside_their_axes(evaluation):
    drawn = drawings.pictures(evaluation)
    assert len(drawn) == 13
    for name, picture in drawn.items():
        root = ElementTree.fromstring(picture)
        lines = [node for node in root if node.tag.endswith("polyline")]
        assert lines, name
        for line in lines:
            for point in line.attrib["points"].split():
                across, up = map(float, point.split(","))
                assert pictures.LEFT - 0.1 <= across <= pictures.WIDTH
                assert pictures.TOP - 0.1 <= up <= pictures.HEIGHT - pictures.BOTTOM + 0.1


def test_a_point_is_drawn_where_its_values_are_on_the_axes():
    series = pictures.Series("line", [(0.0, 0.0), (10.0, 100.0)])
    drawn = pictures.chart("t", pictures.Axis("x"), pictures.Axis("y"), [series])
    [line, _] = re.findall(r'<polyline points="([^"]+)"', drawn)
    left, right = pictures.LEFT, pictures.WIDTH - pictures.RIGHT
    bottom, top = pictures.HEIGHT - pictures.BOTTOM, pictures.TOP
    assert line == f"{left:.1f},{bottom:.1f} {right:.1f},{top:.1f}"


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show():
    axis = pictures.Axis("x", logarithmic=True)
    series = pictures.Series("a < b", [(0.0, 1.0), (1.0, 1.0), (10.0, 5.0)])
    drawn = pictures.chart("t", axis, pictures.Axis("y"), [series])
    assert drawn.count("<circle") == 2 + 1  # the points and the legend's
    assert "a &lt; b" in drawn
    with pytest.raises(ValueError, match="has no points"):
        pictures.chart("t", axis, axis, [pictures.Series("none", [(0.0, 1.0)])])


def test_a_backup_that_gains_nothing_is_a_loss_for_the_machines_used():
    assert drawings.speedups(4, [(0, 2.0), (1, 2.0), (4, 0.5)]) == [(0, 1.0), (1, 0.8), (4, 2.0)]


@pytest.mark.parametrize("module", [pictures, drawings, fleet])
def test_the_examples_of_docstrings_hold(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
