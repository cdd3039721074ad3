"""Make runnel/datasets/iris.npz from scikit-learn's copy of Fisher's irises.

Needs scikit-learn, which runnel itself does not:

    pip install scikit-learn
    python tools/make_iris.py
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

OUTPUT = Path(__file__).resolve().parent.parent / "runnel" / "datasets" / "iris.npz"


def main() -> int:
    """Write the file, and check that it says what scikit-learn says."""
    source = load_iris()
    tenths = np.rint(source.data * 10).astype(np.uint8)
    kinds = source.target.astype(np.uint8)
    assert tenths.shape == (150, 4) and np.allclose(tenths / 10, source.data), "not the irises"
    np.savez_compressed(OUTPUT, tenths=tenths, kinds=kinds)
    print(f"{OUTPUT}: {len(tenths)} flowers, {OUTPUT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
