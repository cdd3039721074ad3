"""A cluster as people see it: rows, a table, a page in a browser."""

from __future__ import annotations

import io
import json
import subprocess
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from rich.console import Console

import runnel as tf
from runnel.command_line import main
from runnel.launch.cluster_page import ClusterPage
from runnel.launch.cluster_table import bytes_text, cluster_table, queues_text
from runnel.launch.cluster_view import ClusterView, QueueLength, TaskRow
from runnel.launch.status_poller import StatusPoller
from tests.launch.conftest import wait_until
from tests.summary.chromium import PROGRAM

WORKERS = {f"worker:{i}": f"localhost:{i}" for i in range(3)}


def _status(task="worker", index=0, life="a", **more) -> dict:
    return {
        "task": f"/job:{task}/replica:0/task:{index}",
        "incarnation": life,
        "connections": [{"sent_bytes": more.pop("sent", 0), "received_bytes": 0}],
        "memory_bytes": 1000,
        "steps_ended": 0,
        "parts_ended": 0,
        "queues": [],
        "masters": [],
        "sessions": [],
        "progress": None,
        **more,
    }


def _progress(step: int, runs: int) -> dict:
    return {"step": step, "runs": runs, "at": 0.0, "chief": False}


def test_rates_are_over_the_last_seconds():
    view = ClusterView({"w": "a"})
    for second in range(20):  # one step a second, then three
        steps = second if second < 10 else 10 + 3 * (second - 10)
        view.observe("a", _status(steps_ended=steps, sent=steps * 100), float(second))
    [row] = view.rows(19.0)
    assert row.steps_per_second == pytest.approx(3.0)
    assert row.sent_per_second == pytest.approx(300.0)
    assert (row.task, row.state, row.memory_bytes) == ("worker:0", "up", 1000)


def test_staleness_is_what_others_have_done_between_two_steps():
    view = ClusterView({"w": "a"})
    view.observe("a", _status(progress=_progress(100, 10)), 0.0)
    view.observe("a", _status(progress=_progress(140, 20)), 5.0)
    [row] = view.rows(5.0)
    assert (row.steps_per_second, row.staleness, row.global_step) == (2.0, 3.0, 140)


def test_a_worker_that_is_much_slower_than_the_others_straggles():
    view = ClusterView(WORKERS)
    for i, rate in enumerate((10, 12, 4)):
        for second in (0, 2):
            view.observe(f"localhost:{i}", _status(index=i, steps_ended=rate * second), second)
    assert [row.straggles for row in view.rows(2.0)] == [False, False, True]


def test_a_parameter_server_shows_its_parts_and_never_straggles():
    view = ClusterView({"ps:0": "p", **WORKERS})
    for second in (0, 2):
        view.observe("p", _status("ps", parts_ended=second), second)
        for i in range(3):
            view.observe(f"localhost:{i}", _status(index=i, steps_ended=50 * second), second)
    ps = view.rows(2.0)[0]
    assert (ps.steps_per_second, ps.straggles) == (1.0, False)


def test_tasks_that_are_gone_silent_or_back_are_seen():
    view = ClusterView({"w": "a"})
    assert view.rows(0.0)[0].state == "down"
    view.observe("a", _status(steps_ended=500), 0.0)
    view.failed("a", "nobody answers")
    row = view.rows(1.0)[0]
    assert (row.task, row.state, row.error) == ("worker:0", "down", "nobody answers")
    view.observe("a", _status(life="b", steps_ended=0), 2.0)
    view.observe("a", _status(life="b", steps_ended=4), 4.0)
    row = view.rows(4.0)[0]
    assert (row.state, row.restarts, row.steps_per_second) == ("up", 1, 2.0)
    assert view.rows(60.0)[0].state == "silent for 56 s"


def test_running_steps_and_what_they_wait_for_are_seen():
    view = ClusterView({"w": "a"})
    step = {"step": 1, "waits_for": [{"op": "dequeue", "type": "", "line": ""}]}
    view.observe("a", _status(masters=[{"steps": [step]}], sessions=[{"steps": [step]}]), 0.0)
    row = view.rows(0.0)[0]
    assert (row.running, row.waits_for) == (2, ("dequeue",))


def test_numbers_are_short():
    sizes = [0, 999, 1500, 2_340_000, 5e9, 7e13]
    assert [bytes_text(n) for n in sizes] == ["0 B", "999 B", "1.5 kB", "2.34 MB", "5 GB", "70 TB"]
    queues = [QueueLength(f"q{i}", i, 10 if i else -1) for i in range(5)]
    assert queues_text(queues) == "q4 4/10, q3 3/10, q2 2/10 and 2 more"
    assert queues_text(queues[:1]) == "q0 0"


NASTY = TaskRow(
    "worker:<b>0</b>",
    "localhost:1",
    "up",
    global_step=1234567,
    steps_per_second=12.345,
    staleness=2.0,
    straggles=True,
    running=3,
    queues=(QueueLength("[red]</td><script>document.title='broken'</script>", 7, 10),),
    memory_bytes=123_000_000,
    sent_per_second=1500.0,
    received_per_second=0.0,
)


def test_the_table_shows_a_row_for_each_task_and_names_as_they_are():
    console = Console(file=io.StringIO(), width=200)
    console.print(cluster_table([NASTY, TaskRow("ps:0", "localhost:2", "down", "it is gone")]))
    _, first, second = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    for text in (NASTY.task, "straggles", "1,234,567", "12.3", NASTY.queues[0].name, "123 MB"):
        assert text in first
    assert second.split() == ["ps:0", "down"]


# The page ---------------------------------------------------------------------------------------


@pytest.fixture
def page():
    with ClusterPage(lambda: [NASTY]) as served:
        yield served


def _get(address: str, **headers: str):
    return urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20)


def test_the_page_is_for_this_machine_and_loads_nothing_from_elsewhere(page):
    with _get(page.address) as answer:
        text = answer.read().decode()
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "http" not in text.replace("https://", "http://").partition("<html")[2]
    with _get(f"{page.address}status.json") as answer:
        [row] = json.load(answer)
    assert row["task"] == NASTY.task and row["queues"][0]["size"] == 7
    for address, headers, status in (
        (page.address, {"Host": f"attacker.example:{page.port}"}, 403),
        (f"{page.address}etc/passwd", {}, 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            _get(address, **headers)
        caught.value.close()
        assert caught.value.code == status


def test_a_browser_shows_the_tasks_and_runs_nothing_of_their_names(page, tmp_path):
    if PROGRAM is None:
        pytest.skip("there is no Chromium here")
    arguments = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000", "--dump-dom"),
    ]
    shown = subprocess.run(
        [PROGRAM, *arguments, page.address], capture_output=True, text=True, timeout=100
    )
    text = shown.stdout
    assert "1 of 1 tasks are up" in text, shown.stderr
    assert "worker:&lt;b&gt;0&lt;/b&gt;" in text
    assert "[red]&lt;/td&gt;&lt;script&gt;" in text and "<title>runnel cluster</title>" in text
    for cell in ("straggles", "1,234,567", "12.3", "123 MB", "1.5 kB/s"):
        assert f">{cell}<" in text


# All of it --------------------------------------------------------------------------------------


def test_a_poller_follows_tasks_that_answer_fail_and_come_back():
    answers: list[str | None] = [None, json.dumps(_status()), None, json.dumps(_status(life="b"))]
    left = iter(answers)

    def asker(address):
        def ask() -> str:
            answer = next(left, answers[-1])
            if answer is None:
                raise tf.errors.UnavailableError(None, None, "nobody answers. Is it running?")
            return answer

        return ask, lambda: None

    with StatusPoller({"w": "a"}, interval=0.01, asker=asker) as poller:
        assert wait_until(lambda: poller.rows()[0].restarts == 1)
        assert poller.rows()[0].state == "up"


@pytest.mark.timeout(60)
def test_the_commands_show_a_real_task():
    server = tf.train.Server.create_local_server()
    address = server.target.removeprefix("grpc://")
    try:
        shown = CliRunner().invoke(
            main, ["cluster", "watch", address, "--every", "0.1", "--for", "1.5"]
        )
        assert shown.exit_code == 0, shown.output
        assert "localhost:0  up" in shown.output
        shown = CliRunner().invoke(main, ["cluster", "page", address, "--for", "0.1"])
        assert shown.exit_code == 0 and "the cluster is at http://localhost:" in shown.output
    finally:
        server.stop()


def test_a_cluster_has_to_be_named():
    shown = CliRunner().invoke(main, ["cluster", "watch"])
    assert shown.exit_code == 2 and "--job" in shown.output
