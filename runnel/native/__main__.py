"""``python -m runnel.native``: what computes convolutions on this CPU, and reads input."""

from __future__ import annotations

from runnel.native import input_library, onednn

if __name__ == "__main__":
    print(onednn.explanation())
    print(input_library.explanation())
