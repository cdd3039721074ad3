"""A program run with a stopwatch on its steps: ``runnel profile SCRIPT``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from runnel.pipelines.watching import INPUT_TIMES, InputInterval
from runnel.run_script import run_program
from runnel.runtime.report.explain_step import StepExplanation, explain_step
from runnel.runtime.report.tier_reason import time_text
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.session.backend import Plan
from runnel.runtime.session.session import BaseSession

_STAGES = 5
"""How many stages of the input are shown."""
_FIRST_TRACED = 5
"""The run of each step that is traced first; each time that there were twice as many, one is traced
anew: at the end the trace shows the step as it has become."""


class StepRecord:
    """What the runs of one step have taken."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.runs = 0
        self.seconds = 0.0
        self.first = 0.0
        self.trace: Any = None
        self.explanation: StepExplanation | None = None

    @property
    def name(self) -> str:
        """The step's fetches and targets."""
        if not isinstance(self.plan, StepPlan):
            return "a step of a cluster"
        tensors, targets, _, _ = self.plan._build
        names = [*(tensor.name for tensor in tensors), *(op.name for op in targets)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more

    @property
    def is_to_be_traced(self) -> bool:
        """Whether the next run is one to be traced."""
        times, rest = divmod(self.runs, _FIRST_TRACED)
        return rest == 0 and times.bit_count() == 1

    @property
    def later(self) -> float:
        """The mean of the runs after the first."""
        return (self.seconds - self.first) / max(self.runs - 1, 1)


class StepRecords:
    """The steps of every session, while :meth:`recording`."""

    def __init__(self, traces: bool) -> None:
        self._traces = traces
        self.consuming = 0.0
        """What those steps took that do not fill queues."""
        self._records: dict[Plan, StepRecord] = {}
        self._sessions: dict[BaseSession, list[StepRecord]] = {}

    def slowest_first(self) -> list[StepRecord]:
        """The steps that were run."""
        return sorted(self._records.values(), key=lambda one: -one.seconds)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Within, every session tells of its steps."""
        run, close = BaseSession._run_plan, BaseSession.close
        records = self

        def timed(
            sess: BaseSession, plan: Plan, feeds: list[Any], options: Any, metadata: Any
        ) -> list[Any]:
            record = records._record(sess, plan)
            if records._traces and record.is_to_be_traced and options is metadata is None:
                return records._traced(run, sess, record, feeds)
            start = time.perf_counter()
            try:
                return run(sess, plan, feeds, options, metadata)
            finally:
                taken = time.perf_counter() - start
                record.first = record.first or taken
                record.seconds += taken
                record.runs += 1
                if not INPUT_TIMES.is_filling:
                    records.consuming += taken

        def explained(sess: BaseSession) -> None:
            records._explain(sess)
            close(sess)

        cls: Any = BaseSession
        cls._run_plan, cls.close = timed, explained
        try:
            yield
        finally:
            cls._run_plan, cls.close = run, close
            for sess in list(self._sessions):
                self._explain(sess)

    def _record(self, sess: BaseSession, plan: Plan) -> StepRecord:
        record = self._records.get(plan)
        if record is None:
            record = self._records[plan] = StepRecord(plan)
            self._sessions.setdefault(sess, []).append(record)
        return record

    @staticmethod
    def _traced(run: Any, sess: BaseSession, record: StepRecord, feeds: list[Any]) -> list[Any]:
        """A run that is traced, and counts for nothing else: its segments are waited for."""
        from tensorboard.compat.proto.config_pb2 import RunMetadata, RunOptions

        record.trace = RunMetadata()
        record.runs += 1
        record.seconds += record.later
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        return run(sess, record.plan, feeds, options, record.trace)

    def _explain(self, sess: BaseSession) -> None:
        """Before its variables are gone."""
        for record in self._sessions.pop(sess, []):
            if isinstance(record.plan, StepPlan):
                record.explanation = explain_step(record.plan, hlo=False)


def _show(records: StepRecords, times: InputInterval, elapsed: float, limit: int) -> str:
    steps = records.slowest_first()
    inside = sum(step.seconds for step in steps)
    lines = [
        f"{time_text(elapsed)} in all, {time_text(inside)} of it in {len(steps)} steps",
        "",
        f"{'runs':>8}  {'in all':>9}  {'first':>9}  {'others':>9}  step",
    ]
    for step in steps:
        cells = (time_text(step.seconds), time_text(step.first), time_text(step.later))
        lines.append(f"{step.runs:>8}  " + "  ".join(f"{c:>9}" for c in cells) + f"  {step.name}")
    lines += _input_lines(times, records.consuming)
    for step in steps[:limit]:
        lines += ["", f"--- {step.name}", str(step.explanation or "It ran elsewhere.")]
    return "\n".join(lines)


def _input_lines(times: InputInterval, inside: float) -> list[str]:
    """How long steps waited for input, and what its stages took."""
    waited, stages = times.seen()
    if not waited:
        return []
    share = min(1.0, waited / inside) if inside else 0.0
    text = f"Steps waited {time_text(waited)} for input, {share:.0%} of their time; its stages took"
    return ["", text, *[f"{time_text(taken):>9}  {name}" for name, taken in stages[:_STAGES]]]


def _write_timelines(records: StepRecords, folder: Path) -> None:
    from runnel.checkpoint.whole_file import write_whole
    from runnel.timeline import Timeline

    for number, step in enumerate(records.slowest_first()):
        if step.trace is not None:
            trace = Timeline(step.trace.step_stats).generate_chrome_trace_format(show_memory=True)
            write_whole(folder / f"step-{number}.json", trace.encode())
            click.echo(f"wrote {folder / f'step-{number}.json'}: {step.name}", err=True)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--top", default=3, show_default=True, help="How many steps are explained.")
@click.option(
    "--timeline",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for traces of the steps, for Chrome's tracing.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def profile(top: int, timeline: Path | None, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with its ARGUMENTS; then show which steps took how long, and how they ran."""
    records = StepRecords(traces=timeline is not None)
    INPUT_TIMES.watch()
    times = InputInterval()
    start = time.perf_counter()
    code: Any = 0
    try:
        with records.recording():
            run_program(script, arguments)
    except SystemExit as end:
        code = end.code
    finally:
        elapsed = time.perf_counter() - start
        INPUT_TIMES.leave()
        click.echo(_show(records, times, elapsed, top), err=True)
        if timeline is not None:
            _write_timelines(records, timeline)
    if code:
        raise SystemExit(code)
