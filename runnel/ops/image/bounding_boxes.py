"""Boxes in images: drawn as lines, and crops that are drawn at random but keep objects in view."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged
from runnel.ops.half_precision import narrow
from runnel.ops.sampling.philox import words_at
from runnel.ops.sampling.random import SEEDS

_PIXELS = "T: {float, half} = DT_FLOAT"

draw_op = register_op(
    "DrawBoundingBoxes",
    inputs="images: T, boxes: float",
    outputs="output: T",
    attrs=_PIXELS,
    differentiable=False,
)
draw_v2_op = register_op(
    "DrawBoundingBoxesV2",
    inputs="images: T, boxes: float, colors: float",
    outputs="output: T",
    attrs=_PIXELS,
    differentiable=False,
)
draw_op.shape(unchanged)
draw_v2_op.shape(unchanged)

# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLOURS = np.array(
    [
        *([1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1]),
        *([0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1]),
    ],
    np.float32,
)


def _drawn(xp: Any, images: Any, boxes: Any, colours: Any) -> Any:
    """``images`` with the outlines of ``boxes``, the later ones over the earlier."""
    if images.ndim != 4 or boxes.ndim != 3 or boxes.shape[2] != 4:
        raise InvalidArgumentError(
            None,
            None,
            "images must be [batch, height, width, depth] and boxes [batch, boxes, 4], not "
            f"{list(images.shape)} and {list(boxes.shape)}",
        )
    if boxes.shape[0] != images.shape[0]:
        raise InvalidArgumentError(
            None, None, f"{images.shape[0]} images have boxes for {boxes.shape[0]}"
        )
    height, width, depth = images.shape[1:]
    if depth not in (1, 3, 4):
        raise InvalidArgumentError(None, None, f"images must have 1, 3 or 4 channels, not {depth}")
    sizes = np.array([height - 1, width - 1, height - 1, width - 1], np.float32)
    corners = xp.asarray((boxes * sizes).astype(np.int64))
    if depth == 1 and colours is _COLOURS:
        colours = np.ones((1, 1), np.float32)
    if colours.ndim != 2 or colours.shape[1] < depth:
        raise InvalidArgumentError(
            None, None, f"colors must be of shape [colors, {depth}], not {list(colours.shape)}"
        )
    rows, columns = xp.arange(height)[:, None], xp.arange(width)[None, :]

    def outlined(index: Any, owner: Any) -> Any:
        top, left, bottom, right = (corners[:, index, i][:, None, None] for i in range(4))
        seen = (top <= bottom) & (left <= right)
        seen &= (top < height) & (bottom >= 0) & (left < width) & (right >= 0)
        within = (rows >= top) & (rows <= bottom) & (columns >= left) & (columns <= right)
        edge = (rows == top) | (rows == bottom) | (columns == left) | (columns == right)
        return xp.where(seen & within & edge, index, owner)

    owner = xp.full(images.shape[:3], -1, np.int64)
    if xp is np:
        for index in range(boxes.shape[1]):
            owner = outlined(index, owner)
    else:
        from jax import lax

        owner = lax.fori_loop(0, boxes.shape[1], outlined, owner)
    painted = xp.take(colours[:, :depth], owner % colours.shape[0], axis=0)
    return xp.where(owner[..., None] >= 0, narrow(painted, images.dtype), images)


@draw_op.kernel
def _(xp, images, boxes):
    return _drawn(xp, images, boxes, _COLOURS)


@draw_v2_op.kernel
def _(xp, images, boxes, colors):
    return _drawn(xp, images, boxes, colors if colors.size else _COLOURS)


def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """``images`` with the outlines of ``boxes``: [y_min, x_min, y_max, x_max], from 0 to 1.

    ``colors`` has a row for each colour; boxes take them in turn.
    """
    if colors is None:
        return draw_op(images, boxes, name=name)
    return draw_v2_op(images, boxes, colors, name=name)


# Random crops ---------------------------------------------------------------------------------

_SAMPLING = [
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
]
_SIZE_TYPE = "T: {uint8, int8, int16, int32, int64}"


def _reserved(shape: tuple[int, ...], *, max_attempts: int) -> int:
    """Counters of the random stream that a draw advances by: four words for each attempt."""
    return max_attempts


_BOX_OUTPUTS = "begin: T, size: T, bboxes: float"
sample_op = register_op(
    "SampleDistortedBoundingBox",
    inputs="image_size: T, bounding_boxes: float",
    outputs=_BOX_OUTPUTS,
    attrs=[_SIZE_TYPE, *SEEDS, "min_object_covered: float = 0.1", *_SAMPLING],
    random=_reserved,
    host=True,
    differentiable=False,
)
sample_v2_op = register_op(
    "SampleDistortedBoundingBoxV2",
    inputs="image_size: T, bounding_boxes: float, min_object_covered: float",
    outputs=_BOX_OUTPUTS,
    attrs=[_SIZE_TYPE, *SEEDS, *_SAMPLING],
    random=_reserved,
    host=True,
    differentiable=False,
)


@sample_op.shape
def _(image_size, bounding_boxes):
    return [(3,), (3,), (1, 1, 4)]


@sample_v2_op.shape
def _(image_size, bounding_boxes, min_object_covered):
    return [(3,), (3,), (1, 1, 4)]


class _Words:
    """The words of a stream, one after the other."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._counter = 0
        self._waiting: list[int] = []

    def word(self) -> int:
        """The next 32 random bits."""
        if not self._waiting:
            words = words_at(np, self._stream, np.array([self._counter], np.uint64))
            self._waiting = [int(word[0]) for word in reversed(words)]
            self._counter += 1
        return self._waiting.pop()

    def fraction(self) -> np.float32:
        """A number in [0, 1): 23 of the bits, as the mantissa of a float."""
        bits = np.uint32(self.word() & 0x7FFFFF | 127 << 23)
        return bits.view(np.float32) - np.float32(1)

    def below(self, count: int) -> int:
        """An integer in [0, count), all equally likely: the last words of the range are skipped."""
        rest = 2**32 % count
        word = self.word()
        while word < rest:
            word = self.word()
        return word % count


class _Rectangle(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    def shared(self, other: _Rectangle) -> int:
        """The area that both have."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width >= 0 and height >= 0 else 0


def _nearest(value: Any) -> int:
    return int(np.rint(np.float32(value)))


def _random_crop(
    words: _Words, width: int, height: int, areas: Any, aspect: np.float32
) -> _Rectangle | None:
    """A crop with an area between ``areas`` (of the whole) and the given proportions, or None."""
    if width <= 0 or height <= 0 or areas[0] > areas[1]:
        return None
    least, most = (area * np.float32(width) * np.float32(height) for area in areas)
    low = _nearest(np.sqrt(least / aspect))
    high = _nearest(np.sqrt(most / aspect))
    if _nearest(high * aspect) > width:
        high = int((width + 0.5 - float(np.float32(1e-7))) / float(aspect))
        if _nearest(high * aspect) > width:
            high -= 1
    high = min(high, height)
    tall = min(low, high)
    if tall < high:
        tall += words.below(high - tall + 1)
    wide = _nearest(tall * aspect)
    # A crop that rounding has made a little too small or too large is corrected by one row.
    if np.float32(wide * tall) < least:
        tall += 1
        wide = _nearest(tall * aspect)
    if np.float32(wide * tall) > most:
        tall -= 1
        wide = _nearest(tall * aspect)
    area = np.float32(wide * tall)
    if not least <= area <= most or not 0 < wide <= width or not 0 < tall <= height:
        return None
    top = words.below(height - tall) if tall < height else 0
    left = words.below(width - wide) if wide < width else 0
    return _Rectangle(left, top, left + wide, top + tall)


def _covers(crop: _Rectangle, objects: list[_Rectangle], share: np.float32) -> bool:
    if crop.area < 1:
        return False
    return any(
        np.float32(crop.shared(box)) / np.float32(box.area) >= share
        for box in objects
        if box.area >= 1
    )


def _refuse(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _sampled(
    image_size: Any,
    boxes: Any,
    share: Any,
    aspect_ratio_range: Any,
    area_range: Any,
    max_attempts: int,
    use_image: bool,
    stream: Any,
) -> list[np.ndarray]:
    if image_size.shape != (3,) or boxes.ndim != 3 or boxes.shape[-1] != 4:
        raise _refuse(
            "image_size must be [height, width, depth] and bounding_boxes [batch, boxes, 4], not "
            f"of the shapes {list(image_size.shape)} and {list(boxes.shape)}"
        )
    aspects, areas = (np.array(r, np.float32) for r in (aspect_ratio_range, area_range))
    if aspects.shape != (2,) or (aspects <= 0).any():
        raise _refuse(f"Aspect ratio range must be two positive numbers, not {aspects.tolist()}")
    if areas.shape != (2,) or (areas <= 0).any() or (areas > 1).any():
        raise _refuse(f"Area range must be two numbers in (0, 1], not {areas.tolist()}")
    if max_attempts <= 0:
        raise _refuse(f"Max attempts must be positive, not {max_attempts}")
    if not share >= 0:
        raise _refuse(f"Min object covered must be non-negative: {share}")
    if boxes.size and not ((boxes >= 0) & (boxes <= 1)).all():
        raise _refuse("All bounding box coordinates must be in [0.0, 1.0]")
    height, width = (int(side) for side in image_size[:2])
    whole = _Rectangle(0, 0, width, height)
    scaled = boxes.reshape(-1, 4) * np.array([height, width, height, width], np.float32)
    objects = [_Rectangle(x1, y1, x2, y2) for y1, x1, y2, x2 in scaled.astype(int).tolist()]
    if not objects:
        if not use_image:
            raise _refuse(
                "No bounding boxes provided as input. Enable use_image_if_no_bounding_boxes if "
                "you wish to not provide any."
            )
        objects = [whole]
    words = _Words(stream)
    chosen = whole
    for _ in range(max_attempts):
        aspect = words.fraction() * (aspects[1] - aspects[0]) + aspects[0]
        crop = _random_crop(words, width, height, areas, aspect)
        if crop is not None and _covers(crop, objects, np.float32(share)):
            chosen = crop
            break
    kind = image_size.dtype
    begin = np.array([chosen.top, chosen.left, 0], kind)
    size = np.array([chosen.bottom - chosen.top, chosen.right - chosen.left, -1]).astype(kind)
    edges = np.array([chosen.top, chosen.left, chosen.bottom, chosen.right], np.float32)
    sides = np.array([height, width, height, width], np.float32)
    return [begin, size, (edges / sides)[None, None]]


@sample_op.kernel
def _(
    xp,
    image_size,
    bounding_boxes,
    *,
    min_object_covered,
    aspect_ratio_range,
    area_range,
    max_attempts,
    use_image_if_no_bounding_boxes,
    stream,
):
    return _sampled(
        image_size,
        bounding_boxes,
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
        stream,
    )


@sample_v2_op.kernel
def _(
    xp,
    image_size,
    bounding_boxes,
    min_object_covered,
    *,
    aspect_ratio_range,
    area_range,
    max_attempts,
    use_image_if_no_bounding_boxes,
    stream,
):
    return _sampled(
        image_size,
        bounding_boxes,
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
        stream,
    )


class DistortedBox(NamedTuple):
    """A crop: ``begin`` and ``size`` for ``tf.slice``, and ``bboxes`` for drawing it."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBox:
    """A random crop of an image that shows at least a part of one of the ``bounding_boxes``.

    Of the given range of proportions and of the share of the image's area. With the same seeds
    it draws TensorFlow's crops. If no crop is found in ``max_attempts``, it is the whole image.

    Example:
        >>> begin, size, _ = tf.image.sample_distorted_bounding_box(
        ...     tf.shape(image), boxes, min_object_covered=0.1)
        >>> tf.slice(image, begin, size)
    """
    given = {
        "seed": seed,
        "seed2": seed2,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    with name_scope(name, "sample_distorted_bounding_box") as scope:
        covered = convert_to_tensor(min_object_covered, dtypes.float32)
        attrs = {key: value for key, value in given.items() if value is not None}
        made = sample_v2_op(image_size, bounding_boxes, covered, name=scope, **attrs)
        return DistortedBox(*made)
