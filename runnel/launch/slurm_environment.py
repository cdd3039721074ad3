"""What ``srun`` tells its tasks, as a cluster (pure).

Each task of a step finds in its environment which one it is and which machines the step has; from
that all of them work out the same description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle

from runnel.launch.task_layout import LaunchedTask, TaskLayout

FIRST_PORT, PORT_COUNT = 15000, 15000
"""Where ports are taken from if ``srun --resv-ports`` has reserved none: below those that systems
hand out by themselves."""
_PORTS_OF_A_STEP = 64

_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class SlurmError(ValueError):
    """The environment is not that of a step of Slurm, or does not fit the job."""


@dataclass(frozen=True, slots=True)
class SlurmStep:
    """A step: the machine of each of its tasks in the order of their numbers, and this task's."""

    hosts: tuple[str, ...]
    number: int
    ports: tuple[int, ...]
    """A port for each task."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SlurmStep:
        """Reads what ``srun`` has set."""
        number = int(_required(environment, "SLURM_PROCID"))
        nodes = expanded_hosts(
            environment.get("SLURM_STEP_NODELIST") or _required(environment, "SLURM_NODELIST")
        )
        counts = expanded_counts(
            environment.get("SLURM_STEP_TASKS_PER_NODE")
            or _required(environment, "SLURM_TASKS_PER_NODE")
        )
        if len(counts) != len(nodes):
            raise SlurmError(f"Slurm names {len(nodes)} nodes, but tasks of {len(counts)}")
        total = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
        if total is not None and int(total) != sum(counts):
            raise SlurmError(f"Slurm names {total} tasks, but the nodes have {sum(counts)}")
        where = list(_distributed(counts, environment))
        own = environment.get("SLURM_NODEID")
        if own is not None and where[number] != int(own):
            raise SlurmError(
                f"Task {number} should be on node {where[number]}, but is on {own}: the tasks are "
                f"distributed in a way that is not known "
                f"({environment.get('SLURM_DISTRIBUTION', 'not told')}); use "
                "srun --distribution=block"
            )
        return cls(tuple(nodes[i] for i in where), number, _ports(where, environment))

    def cluster(self, layout: TaskLayout) -> tuple[dict[str, list[str]], LaunchedTask]:
        """The cluster, and which of its tasks this one is: parameter servers come first."""
        tasks = layout.tasks()
        if len(tasks) != len(self.hosts):
            raise SlurmError(
                f"The job has {len(tasks)} tasks ({', '.join(map(str, tasks))}), but srun has "
                f"started {len(self.hosts)}: set srun --ntasks={len(tasks)}"
            )
        alone = len(set(self.hosts)) == 1  # nobody else need reach them
        addresses = [
            f"{'localhost' if alone else host}:{port}" for host, port in zip(self.hosts, self.ports)
        ]
        return layout.cluster(addresses[: len(layout.in_cluster())]), tasks[self.number]


def expanded_hosts(text: str) -> list[str]:
    """The names in a list of hosts, in order.

    Example:
        >>> expanded_hosts("login,rack[1-2]n[08-09,12]")
        ['login', 'rack1n08', 'rack1n09', 'rack1n12', 'rack2n08', 'rack2n09', 'rack2n12']
    """
    return [host for item in _items(text) for host in _expanded(item, text)]


def _items(text: str) -> Iterator[str]:
    """The parts between commas that are in no brackets."""
    depth = begin = 0
    for place, character in enumerate(text + ","):
        if character == "," and depth == 0:
            item = text[begin:place].strip()
            if not item:
                raise SlurmError(f"{text!r} is no list of hosts: a name is missing")
            yield item
            begin = place + 1
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise SlurmError(f"{text!r} is no list of hosts: its brackets do not match")
    if depth:
        raise SlurmError(f"{text!r} is no list of hosts: its brackets do not match")


def _expanded(item: str, text: str) -> Iterator[str]:
    before, bracket, rest = item.partition("[")
    if not bracket:
        yield item
        return
    inside, _, after = rest.partition("]")
    for part in inside.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise SlurmError(f"{text!r} is no list of hosts: {part!r} is no range of numbers")
        first, last = found[1], found[2] or found[1]
        if int(last) < int(first):
            raise SlurmError(f"{text!r} is no list of hosts: {part!r} runs backwards")
        for number in range(int(first), int(last) + 1):
            for end in _expanded(after, text):
                yield f"{before}{number:0{len(first)}d}{end}"


def expanded_counts(text: str) -> list[int]:
    """How many tasks each node has.

    Example:
        >>> expanded_counts("2(x3),1")
        [2, 2, 2, 1]
    """
    found = []
    for part in text.split(","):
        match = _COUNT.fullmatch(part.strip())
        if match is None:
            raise SlurmError(f"{text!r} does not say how many tasks the nodes have")
        found += [int(match[1])] * int(match[2] or 1)
    return found


def _distributed(counts: list[int], environment: Mapping[str, str]) -> Iterator[int]:
    """The number of the node of each task: one node after the other, or in turn."""
    kind = re.split("[:,=]", environment.get("SLURM_DISTRIBUTION", "block"))[0].lower()
    width = {"cyclic": 1, "plane": int(environment.get("SLURM_DIST_PLANESIZE") or 1)}.get(kind)
    if width is None:
        for node, count in enumerate(counts):
            yield from [node] * count
        return
    left = list(counts)
    for node in cycle(range(len(left))):
        if not any(left):
            return
        taken = min(width, left[node])
        left[node] -= taken
        yield from [node] * taken


def _ports(where: list[int], environment: Mapping[str, str]) -> tuple[int, ...]:
    """A port for each task, other ones for the tasks of one node."""
    reserved = environment.get("SLURM_STEP_RESV_PORTS")
    if reserved:
        numbers = [int(name) for name in expanded_hosts(f"[{reserved}]")]
    else:
        job = int(environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID") or 0)
        step = int(environment.get("SLURM_STEP_ID") or 0)
        slots = PORT_COUNT // _PORTS_OF_A_STEP
        begin = FIRST_PORT + (job * 31 + step) % slots * _PORTS_OF_A_STEP
        numbers = list(range(begin, begin + max(_PORTS_OF_A_STEP, len(where))))
    used: dict[int, int] = {}
    found = []
    for node in where:
        place = used.get(node, 0)
        if place >= len(numbers):
            raise SlurmError(
                f"Slurm has reserved {len(numbers)} ports, too few: set srun --resv-ports=N for N "
                "tasks on one node"
            )
        used[node] = place + 1
        found.append(numbers[place])
    return tuple(found)


def _required(environment: Mapping[str, str], name: str) -> str:
    try:
        return environment[name]
    except KeyError:
        raise SlurmError(
            f"{name} is not set: --slurm is for tasks of a step, srun runnel up --slurm ..."
        ) from None
