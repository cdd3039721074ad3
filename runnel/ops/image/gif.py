"""GIF: the frames of an animation, each drawn over the one before."""

from __future__ import annotations

import numpy as np

from runnel.ops.image.image_files import opened, require_size


def read_gif(contents: bytes, only_first: bool = False) -> np.ndarray:
    """The frames of a GIF file, ``(frames, height, width, 3)``."""
    from PIL import ImageSequence

    frames = []
    with opened(contents, "GIF") as image:
        require_size(image.height, image.width, 3)
        for i, frame in enumerate(ImageSequence.Iterator(image)):
            require_size(image.height * (i + 1), image.width, 3)
            frames.append(np.asarray(frame.convert("RGB")))
            if only_first:
                break
    return np.stack(frames)
