"""Writes the Python code of the cluster's messages from their .proto files.

Needs ``pip install grpcio-tools==1.73.1``: code made by a newer one does not run with the oldest
protobuf that is supported.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "runnel/distributed/protocol"


def main() -> int:
    """Runs the compiler of protocol buffers; returns its status."""
    from grpc_tools import protoc

    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / FOLDER).glob("*.proto"))
    return protoc.main(
        ["protoc", f"-I{ROOT}", f"--python_out={ROOT}", f"--pyi_out={ROOT}", *sources]
    )


if __name__ == "__main__":
    sys.exit(main())
