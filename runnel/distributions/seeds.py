"""Seeds of the parts of a distribution, derived from its own as TensorFlow derives them."""

from __future__ import annotations

import hashlib


def derived_seed(seed: int | None, salt: str) -> int | None:
    """Another seed for each ``salt``; None stays None."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF
