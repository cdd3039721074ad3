"""Says what a task is doing, for people: as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from runnel.distributed.progress_record import VARIABLE, ProgressRecord
from runnel.queues.queue import Queue


def status_of(server: Any) -> str:
    """The task, its sessions, its running steps and what each waits for."""
    host = server.host
    now = time.time()
    sessions = [
        {
            "session": f"{session.number:x}",
            "isolated": session.isolated,
            "parts": len(session.parts),
            "steps": [
                {
                    "step": run.step.number,
                    "seconds": round(now - run.begun, 3),
                    "waits_for": _waits(run.context),
                }
                for run in list(host.runs.values())
                if run.step.session == session.number
            ],
        }
        for session in list(host.sessions.values())
    ]
    masters = [
        {
            "session": f"{master.number:x}",
            "steps": [
                {
                    "step": number,
                    "seconds": round(now - step.begun, 3),
                    "waits_for_parts_on": step.awaited(),
                    "waits_for": _waits(step.context),
                }
                for number, step in list(master.running.items())
            ],
        }
        for master in list(server.masters.values())
    ]
    ended = server.steps_of_closed + sum(m.ended_steps for m in list(server.masters.values()))
    return json.dumps(
        {
            "task": server.task,
            "time": now,
            "address": server.target,
            "incarnation": f"{server.peers.me.incarnation:x}",
            "devices": [device.name for device in server.devices],
            "connections": [
                {
                    "task": channel.task,
                    "incarnation": f"{channel.incarnation:x}",
                    "sent_bytes": channel.sent_bytes,
                    "received_bytes": channel.received_bytes,
                }
                for channel in server.peers.channels()
            ],
            "threads": threading.active_count(),
            "memory_bytes": _memory(),
            "steps_ended": ended,
            "parts_ended": host.ended_parts,
            "queues": _queues(host),
            "progress": _progress(),
            "sessions": sessions,
            "masters": masters,
        }
    )


def _queues(host: Any) -> list[dict[str, Any]]:
    """The queues of the task, and of sessions that keep their state apart."""
    states = {id(host.state): host.state}
    states.update({id(session.state): session.state for session in list(host.sessions.values())})
    return [
        {"name": name, "size": queue.size(), "capacity": queue.capacity}
        for state in states.values()
        for name, queue in state.resources.named()
        if isinstance(queue, Queue)
    ]


def _memory() -> int:
    """The bytes of this process that are in memory; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _progress() -> dict[str, Any] | None:
    """How far the training of this process has come, if its launcher wants to know."""
    path = os.environ.get(VARIABLE)
    record = ProgressRecord.read(Path(path)) if path else None
    if record is None:
        return None
    return {"step": record.step, "runs": record.runs, "at": record.step_at, "chief": record.chief}


def _waits(context: Any) -> list[dict[str, Any]]:
    """The operations that a step waits for, each with the user's line and for how long."""
    found = []
    now = time.monotonic()
    for waiter, since in list((context.outstanding or {}).items()):
        op = waiter.node.op
        site = op.creation_site()
        line = site[-1] if site else ""
        waited = round(now - since, 3)
        found.append({"op": op.origin, "type": op.type, "line": line, "seconds": waited})
    return found
