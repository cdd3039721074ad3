"""Make runnel/datasets/digits.npz from scikit-learn's copy of the UCI handwritten digits.

Needs scikit-learn, which runnel itself does not:

    pip install scikit-learn
    python tools/make_digits.py
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

OUTPUT = Path(__file__).resolve().parent.parent / "runnel" / "datasets" / "digits.npz"


def main() -> int:
    """Write the file, and check that it says what scikit-learn says."""
    source = load_digits()
    images = source.images.astype(np.uint8)
    labels = source.target.astype(np.uint8)
    assert images.shape == (1797, 8, 8) and images.max() == 16, "not the digits expected"
    assert (images == source.images).all() and (labels == source.target).all(), "not integers"
    np.savez_compressed(OUTPUT, images=images, labels=labels)
    print(f"{OUTPUT}: {len(images)} images, {OUTPUT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
