"""How much room this machine has: tests of large things are skipped where it does not suffice."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pytest

GIB = 1 << 30


def available_memory() -> int:
    """The bytes that a new program could take; 0 where the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 0
    found = re.search(r"MemAvailable:\s+(\d+) kB", text)
    return int(found.group(1)) * 1024 if found else 0


def needs_room(memory: int, disk: int = 0) -> pytest.MarkDecorator:
    """Skips a test where there are fewer bytes of memory, or of room for temporary files."""
    lacks = available_memory() < memory
    lacks = lacks or shutil.disk_usage(tempfile.gettempdir()).free < disk
    reason = f"needs {memory / GIB:.0f} GiB of memory"
    if disk:
        reason += f" and {disk / GIB:.0f} GiB of disk"
    return pytest.mark.skipif(lacks, reason=reason)
