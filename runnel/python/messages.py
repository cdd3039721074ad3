"""Messages whose modules lie inside ``tensorflow.python``."""

from typing import Any

from runnel.checkpoint.protos import message


def __getattr__(name: str) -> Any:
    if name == "CheckpointState":
        return message(name)
    raise AttributeError(name)
