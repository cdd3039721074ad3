"""What a task is doing, for people: as JSON."""

from __future__ import annotations

import json
import threading
import time
from typing import Any


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
                {"step": number, "waits_for_parts_on": step.awaited(), **_of_context(step)}
                for number, step in list(master.running.items())
            ],
        }
        for master in list(server.masters.values())
    ]
    return json.dumps(
        {
            "task": server.task,
            "address": server.target,
            "incarnation": f"{server.peers.me.incarnation:x}",
            "devices": [device.name for device in server.devices],
            "connections": [
                {"task": channel.task, "incarnation": f"{channel.incarnation:x}"}
                for channel in server.peers.channels()
            ],
            "threads": threading.active_count(),
            "sessions": sessions,
            "masters": masters,
        }
    )


def _of_context(step: Any) -> dict[str, Any]:
    return {"waits_for": _waits(step.context)}


def _waits(context: Any) -> list[dict[str, Any]]:
    """The operations that a step waits for, each with the user's line."""
    found = []
    for waiter in list(context.outstanding or ()):
        op = waiter.node.op
        site = op.creation_site()
        found.append({"op": op.origin, "type": op.type, "line": site[-1] if site else ""})
    return found
