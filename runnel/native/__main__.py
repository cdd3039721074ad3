"""``python -m runnel.native``: what convolutions on this CPU are computed by."""

from __future__ import annotations

from runnel.native.onednn import explanation

if __name__ == "__main__":
    print(explanation())
