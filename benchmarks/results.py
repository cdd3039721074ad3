"""What a run found out: a table's rows, the machine they hold for, the file that keeps them."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.interleaving import Measurement, Spread

DIRECTORY = Path(__file__).resolve().parent / "results"
PACKAGES = ("runnel", "numpy", "jax", "jaxlib", "tensorflow", "tensorflow-cpu", "torch")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what was measured, for whom, and whether it shows what it must."""

    name: str
    what: str
    unit: str
    values: dict[str, Spread]
    """The measured value of each contender, in the unit."""
    faster_than: dict[str, Spread] = field(default_factory=dict)
    """How many times faster runnel is than each peer."""
    must_show: str | None = None
    passed: bool | None = None
    """None where nothing is demanded, or nothing could be decided."""
    notes: tuple[str, ...] = ()
    measured: str = ""
    """When, in ISO 8601."""
    samples: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """The samples behind the values: seconds for one unit of work, round by round."""


def samples_of(measurements: dict[str, Measurement]) -> dict[str, list[dict[str, float]]]:
    """The raw samples of measurements, for the file."""
    return {
        name: [{"wall": sample.wall, "cpu": sample.cpu} for sample in measurement.samples]
        for name, measurement in measurements.items()
    }


def now() -> str:
    """The current moment, in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def describe_machine() -> dict[str, Any]:
    """The processor, the system and the versions that the values hold for."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        **({"accelerator": name} if (name := accelerator()) else {}),
        # A load well above zero means that somebody else was using the cores.
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def accelerator() -> str | None:
    """The GPU's name, where NVIDIA's driver knows one."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip().split("\n")[0] or None


def _cpu_model() -> str:
    fields: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    except OSError:
        return platform.processor() or platform.machine()
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return name


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def path_of(name: str) -> Path:
    """The file that keeps the results of the named benchmark."""
    return DIRECTORY / f"{name}.json"


def save(name: str, machine: dict[str, Any], rows: Iterable[Row]) -> Path:
    """Write the rows; rows of an earlier run that were not measured again are kept.

    They are dropped when that run was on another machine or beside other versions: a table must
    hold for one machine.
    """
    path = path_of(name)
    kept: dict[str, Row] = {}
    if path.exists():
        earlier, earlier_rows = load(name)
        if all(earlier.get(key) == machine[key] for key in ("cpu", "cores", "python", "versions")):
            kept = {row.name: row for row in earlier_rows}
    for row in rows:
        # A row takes its old place, so that the table keeps its order.
        kept[row.name] = row
    content = {"machine": machine, "rows": [asdict(row) for row in kept.values()]}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def load(name: str) -> tuple[dict[str, Any], list[Row]]:
    """The machine and the rows of the named benchmark's last run."""
    content = json.loads(path_of(name).read_text())
    return content["machine"], [_row_from(fields) for fields in content["rows"]]


def _row_from(fields: dict[str, Any]) -> Row:
    fields = dict(fields)
    for key in ("values", "faster_than"):
        fields[key] = {name: Spread(**spread) for name, spread in fields[key].items()}
    fields["notes"] = tuple(fields["notes"])
    return Row(**fields)
