"""Batches of images, from files and from memory, beside TensorFlow.

`python -m benchmarks.images` measures every row; `--rows resized_files` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/images.json`.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import command
from benchmarks.results import Row, cores
from benchmarks.trial import SUBJECT, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads.images"


def _batches(settings: Settings, name: str, what: str, at_least: float, batches: int) -> list[Row]:
    """Rounds of ``batches``, so many that those made ahead between two rounds do not count."""
    with Trial(settings, CONTENDERS) as trial:
        outcome = trial.measure(f"{WORKLOADS}:{name}", {"threads": cores()}, iterations=batches)
    return [
        speed_row(
            name,
            what,
            "ms",
            outcome,
            durations(outcome, 1e3),
            must_show=f"at least {at_least:g} of TensorFlow's speed",
            at_least={"tensorflow": at_least},
        )
    ]


def resized_files(settings: Settings) -> list[Row]:
    """Photographs: files, decoded and resized."""
    what = "a batch of 32 JPEG files of 375 x 500 pixels, decoded and resized to 224 x 224"
    return _batches(settings, "resized_files", what, 0.8, 20)


def distorted_slices(settings: Settings) -> list[Row]:
    """Small pictures: a mapped function of many small operations."""
    what = "a batch of 32 pictures of 32 x 32 from memory: shuffled, cropped, mirrored, normalised"
    return _batches(settings, "distorted_slices", what, 1.0, 100)


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    function.__name__: function for function in (resized_files, distorted_slices)
}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure batches of images beside TensorFlow's.")
    command.run("images", "batches of images", ROWS, parser, command.sustained)
