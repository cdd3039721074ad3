"""How much images change, and how alike two of them are."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.ops.activations import relu
from runnel.ops.arithmetic import pow, squared_difference
from runnel.ops.array_shape import expand_dims, reshape, shape_n
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.comparison import equal, greater_equal
from runnel.ops.control import identity
from runnel.ops.convolution.depthwise_convolution import depthwise_conv2d
from runnel.ops.convolution.pool_functions import avg_pool
from runnel.ops.division import floormod
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import log, square
from runnel.ops.fill import zeros
from runnel.ops.image.image_dtype import convert_image_dtype
from runnel.ops.joining import concat, stack
from runnel.ops.padding import pad, tile
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_all, reduce_mean, reduce_prod, reduce_sum
from runnel.ops.softmax import softmax


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels, of an image or of each of several."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images, name="images")
        if images.dims is None or len(images.dims) not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        across = images[..., 1:, :] - images[..., :-1, :]
        axes = None if len(images.dims) == 3 else [1, 2, 3]
        return reduce_sum(absolute(down), axis=axes) + reduce_sum(absolute(across), axis=axes)


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """The differences of each pixel to the one below and to the one at its right, as images.

    Those of the last row and column are zeros.
    """
    image = convert_to_tensor(image, name="image")
    if image.dims is None or len(image.dims) != 4:
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}."
        )
    sizes = shape_of(image)
    batch, height, width, depth = (sizes[i] for i in range(4))
    kind = image.dtype.base_dtype
    down = image[:, 1:] - image[:, :-1]
    across = image[:, :, 1:] - image[:, :, :-1]
    down = concat([down, zeros(stack([batch, 1, width, depth]), kind)], 1)
    across = concat([across, zeros(stack([batch, height, 1, depth]), kind)], 2)
    return reshape(down, sizes), reshape(across, sizes)


_SOBEL = np.array(
    [[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]]
).transpose(1, 2, 0)[:, :, None]


def sobel_edges(image: Any) -> Tensor:
    """Sobel's vertical and horizontal slopes of images, as a new last dimension."""
    image = convert_to_tensor(image, name="image")
    sizes = shape_of(image)
    kernels = convert_to_tensor(_SOBEL.astype(image.dtype.np_dtype))
    filters = tile(kernels, stack([1, 1, sizes[-1], 1]), name="sobel_filters")
    padded = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    slopes = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    edges = reshape(slopes, concat([sizes, [2]], 0))
    if image.dims is not None:
        edges.set_shape([*image.dims, 2])
    return edges


# Likeness -------------------------------------------------------------------------------------


def _checks(a: Tensor, b: Tensor) -> list[Any]:
    """What must hold of two images that are compared."""
    for dims in (a.dims, b.dims):
        if dims is not None and len(dims) < 3:
            raise ValueError(f"Shape {format_dims(dims)} must have rank at least 3")
    if a.dims is not None and b.dims is not None:
        if not compatible_dims(a.dims[-3:], b.dims[-3:]):
            raise ValueError(f"Shapes {a.shape} and {b.shape} are incompatible")
        for x, y in zip(reversed(a.dims[:-3]), reversed(b.dims[:-3]), strict=False):
            if x not in (None, 1, y) and y not in (None, 1):
                raise ValueError(f"Two images are not compatible: {a.shape} and {b.shape}")
    first, second = shape_n([a, b])
    return [Assert(reduce_all(equal(first[-3:], second[-3:])), [first, second], summarize=10)]


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The ratio of ``max_val`` to the noise that distinguishes two images, in decibels."""
    with name_scope(name, "PSNR", [a, b]):
        a = convert_to_tensor(a)
        limit = convert_image_dtype(cast(max_val, a.dtype), dtypes.float32)
        first, second = (convert_image_dtype(x, dtypes.float32) for x in (a, b))
        noise = reduce_mean(squared_difference(first, second), [-3, -2, -1])
        decibels: Any = 20 * log(limit) / np.log(10.0, dtype=np.float32)
        decibels -= np.float32(10 / np.log(10)) * log(noise)
        with control_dependencies(_checks(first, second)):
            return identity(decibels)


def _gaussian(size: Tensor, deviation: Tensor) -> Tensor:
    """A bell of ``size`` by ``size`` pixels whose sum is 1."""
    places: Any = cast(sequence(size), deviation.dtype) - cast(size - 1, deviation.dtype) / 2.0
    bell: Any = square(places) * (-0.5 / square(deviation))
    both = reshape(bell, [1, -1]) + reshape(bell, [-1, 1])
    return reshape(softmax(reshape(both, [1, -1])), stack([size, size, 1, 1]))


def _likeness(
    x: Any, y: Any, limit: Any, filter_size: Any, filter_sigma: Any, k1: float, k2: float
) -> tuple[Any, Any]:
    """SSIM and its second factor (contrast and structure) for each image and channel."""
    size = convert_to_tensor(filter_size, dtypes.int32)
    deviation = convert_to_tensor(filter_sigma, x.dtype)
    sizes = shape_n([x, y])
    checks = [
        Assert(reduce_all(greater_equal(s[-3:-1], size)), [s, size], summarize=8) for s in sizes
    ]
    with control_dependencies(checks):
        x = identity(x)
    bell = tile(_gaussian(size, deviation), stack([1, 1, sizes[0][-1], 1]))

    def blurred(image: Any) -> Any:
        dims = shape_of(image)
        flat = reshape(image, concat([[-1], dims[-3:]], 0))
        out = depthwise_conv2d(flat, bell, strides=[1, 1, 1, 1], padding="VALID")
        return reshape(out, concat([dims[:-3], shape_of(out)[1:]], 0))

    c1, c2 = (k1 * limit) ** 2, (k2 * limit) ** 2
    mean_x, mean_y = blurred(x), blurred(y)
    product = mean_x * mean_y * 2.0
    squares = square(mean_x) + square(mean_y)
    luminance = (product + c1) / (squares + c1)
    covariance = blurred(x * y) * 2.0
    variances = blurred(square(x) + square(y))
    structure = (covariance - product + c2) / (variances - squares + c2)
    axes = [-3, -2]
    return reduce_mean(luminance * structure, axes), reduce_mean(structure, axes)


def _as_compared(img1: Any, img2: Any, max_val: Any) -> tuple[Any, Any, Any]:
    first, second = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    with control_dependencies(_checks(first, second)):
        first = identity(first)
    limit = convert_image_dtype(cast(max_val, first.dtype), dtypes.float32)
    return (
        convert_image_dtype(first, dtypes.float32),
        convert_image_dtype(second, dtypes.float32),
        limit,
    )


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images (Wang et al., 2004): 1 for equal ones."""
    with name_scope(None, "SSIM", [img1, img2]):
        first, second, limit = _as_compared(img1, img2, max_val)
        alike, _ = _likeness(first, second, limit, filter_size, filter_sigma, k1, k2)
        return reduce_mean(alike, [-1])


_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """:func:`ssim` at several scales, each half of the one before (Wang et al., 2003)."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        first, second, limit = _as_compared(img1, img2, max_val)
        pair: list[Any] = [first, second]
        factors: list[Any] = []
        alike: Any = None
        for scale in range(len(power_factors)):
            with name_scope(None, f"Scale{scale}", pair):
                if scale:
                    pair = [_halved(image) for image in pair]
                alike, structure = _likeness(
                    pair[0], pair[1], limit, filter_size, filter_sigma, k1, k2
                )
                factors.append(relu(structure))
        factors[-1] = relu(alike)
        powers = convert_to_tensor(np.array(power_factors, np.float32))
        score = reduce_prod(pow(stack(factors, axis=-1), powers), [-1])
        return reduce_mean(score, [-1])


def _halved(image: Any) -> Any:
    """Images of half the size; odd sides are first extended by their last pixels."""
    dims = shape_of(image)
    flat = reshape(image, concat([[-1], dims[-3:]], 0))
    odd = floormod(dims[-3:], [2, 2, 1])
    flat = pad(flat, pad(expand_dims(odd, -1), [[1, 0], [1, 0]]), mode="SYMMETRIC")
    half = avg_pool(flat, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return reshape(half, concat([dims[:-3], shape_of(half)[1:]], 0))
