"""tf.image compared with TensorFlow: values, types, static shapes, gradients, refusals."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import runnel  # noqa: E402
from tests.conformance.cases import case  # noqa: E402
from tests.conformance.op_examples.images import COLOUR, HALVED, file, picture  # noqa: E402
from tests.conformance.same_fetches import assert_same_fetches  # noqa: E402
from tests.conformance.side_by_side import compare, op_of, tensorflow  # noqa: E402

RNG = np.random.default_rng(5)
IMAGES = RNG.random((2, 5, 7, 3)).astype(np.float32)
ONE = IMAGES[0]
BYTES = RNG.integers(0, 256, (6, 4, 3)).astype(np.uint8)
LARGE = RNG.random((2, 24, 26, 2)).astype(np.float32)
BOXES = np.array([[0.12, 0.2, 0.83, 0.91], [-0.2, 0.1, 0.53, 1.3]], np.float32)


def resized(tf: Any, images: Any, **how: Any) -> list[Any]:
    """By every method that has the rule, smaller and larger."""
    return [
        resize(images, size, **how)
        for resize in (tf.image.resize_bilinear, tf.image.resize_bicubic)
        for size in ([3, 11], [1, 1], [9, 2])
    ] + [tf.image.resize_nearest_neighbor(images, [3, 11], **how)]


def sized(tf: Any, image: Any) -> list[Any]:
    return [
        tf.image.resize_images(image, [3, 9]),
        tf.image.resize_images(image, [3, 9], tf.image.ResizeMethod.NEAREST_NEIGHBOR),
        tf.image.resize(image, [6, 6], tf.image.ResizeMethod.BICUBIC, align_corners=True),
        tf.image.resize_images(image, [6, 6], preserve_aspect_ratio=True),
        tf.image.resize_image_with_pad(image, 6, 5),
        tf.image.resize_image_with_crop_or_pad(image, 4, 9),
        tf.image.central_crop(image, 0.5),
        tf.image.crop_to_bounding_box(image, 1, 2, 3, 4),
        tf.image.pad_to_bounding_box(image, 1, 2, 8, 10),
    ]


def turned(tf: Any, image: Any) -> list[Any]:
    return [
        tf.image.flip_left_right(image),
        tf.image.flip_up_down(image),
        tf.image.transpose_image(image),
    ]


CASES = [
    case("corners", resized, IMAGES),
    case("align corners", lambda tf, x: resized(tf, x, align_corners=True), IMAGES),
    case("centres", lambda tf, x: resized(tf, x, half_pixel_centers=True), IMAGES),
    case(
        "area",
        lambda tf, x: [tf.image.resize_area(x, s) for s in ([2, 3], [9, 4])],
        IMAGES,
        order=0,
    ),
    case("double", lambda tf, x: resized(tf, x)[0], IMAGES.astype(np.float64)),
    case(
        "crop and resize",
        lambda tf, x, boxes: [
            tf.image.crop_and_resize(x, boxes, [0, 1], [4, 3], extrapolation_value=0.5),
            tf.image.crop_and_resize(x, boxes, [1, 0], [1, 2], method="bilinear"),
        ],
        IMAGES,
        BOXES,
    ),
    case(
        "scale and translate",
        lambda tf, x: op_of(tf, "ScaleAndTranslate")(
            x, [4, 4], tf.constant([0.7, 1.2]), tf.constant([0.5, 0.0]), kernel_type="triangle"
        ),
        IMAGES,
    ),
    case("sizes of one", sized, ONE),
    case("sizes of several", sized, IMAGES, order=0),
    case("sizes of unknown", sized, ONE, shapes=[[None, None, 3]], order=0),
    case("turned", turned, ONE),
    case("turned, several", turned, IMAGES, order=0),
    case(
        "colours",
        lambda tf, x: [
            tf.image.rgb_to_hsv(x),
            tf.image.rgb_to_yiq(x),
            tf.image.yiq_to_rgb(x),
            tf.image.rgb_to_yuv(x),
            tf.image.yuv_to_rgb(x),
            tf.image.rgb_to_grayscale(x),
            tf.image.grayscale_to_rgb(x[..., :1]),
            tf.image.adjust_brightness(x, 0.2),
            tf.image.adjust_gamma(x, 0.6, 2.0),
            tf.image.per_image_standardization(x),
        ],
        IMAGES,
        atol=1e-5,
    ),
    case(
        "adjusted",
        lambda tf, x: [
            tf.image.hsv_to_rgb(x),
            tf.image.adjust_contrast(x, 1.7),
            tf.image.adjust_hue(x, -0.3),
            tf.image.adjust_saturation(x, 1.4),
        ],
        IMAGES,
        order=0,
    ),
    case(
        "bytes",
        lambda tf, x: [
            tf.image.rgb_to_grayscale(x),
            tf.image.adjust_brightness(x, 0.2),
            tf.image.adjust_contrast(x, 0.4),
            tf.image.convert_image_dtype(x, tf.float32),
            tf.image.convert_image_dtype(x, tf.uint16),
            tf.image.convert_image_dtype(x, tf.int16),
            tf.image.convert_image_dtype(tf.cast(x, tf.float32) / 200, tf.uint8, saturate=True),
            tf.image.convert_image_dtype(tf.cast(x, tf.float32) / 255, tf.int8),
            tf.image.convert_image_dtype(tf.cast(x, tf.int32) * 9000, tf.uint8),
        ],
        BYTES,
        order=0,
    ),
    case(
        "differences",
        lambda tf, x: [
            tf.image.total_variation(x),
            tf.image.total_variation(x[0]),
            *tf.image.image_gradients(x),
        ],
        IMAGES,
    ),
    case("edges", lambda tf, x: tf.image.sobel_edges(x), IMAGES, order=0),
    case(
        "likeness",
        lambda tf, x, y: [
            tf.image.psnr(x, y, 1.0),
            tf.image.ssim(x, y, 1.0, filter_size=5),
            tf.image.ssim_multiscale(x, y, 1.0, (0.4, 0.6), filter_size=5),
        ],
        LARGE,
        LARGE[::-1] * 0.5 + LARGE * 0.4,
        rtol=1e-4,
        atol=1e-5,
    ),
    case(
        "patches",
        lambda tf, x: [
            tf.extract_image_patches(x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"),
            tf.image.extract_patches(x, [1, 3, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID"),
        ],
        IMAGES,
        shapes=[[2, None, None, 3]],
    ),
    case(
        "volumes",
        lambda tf, x: tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 2, 1], "SAME"),
        RNG.random((1, 3, 4, 4, 2)).astype(np.float32),
    ),
    case(
        "boxes",
        lambda tf, x: tf.image.draw_bounding_boxes(
            x, np.stack([BOXES] * 2), colors=[[1.0, 0, 0], [0, 1, 0]]
        ),
        IMAGES,
        order=0,
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)


def test_turning_as_often_as_the_step_says():
    for build in (lambda tf, x, k: tf.image.rot90(x, k), lambda tf, x, k: tf.image.rot90([x], k)):
        for turns in range(-1, 4):
            compare(build, ONE, np.array(turns, np.int32), order=0)
    assert_same_fetches(lambda tf: [tf.image.rot90(ONE, turns) for turns in range(-1, 4)])


def test_random_changes_draw_the_same_numbers():
    def build(tf: Any) -> Any:
        image, images = tf.constant(ONE), tf.constant(IMAGES)
        return [
            tf.image.random_flip_left_right(image, seed=1),
            tf.image.random_flip_up_down(image, seed=2),
            tf.image.random_flip_left_right(images, seed=4),
            tf.image.random_brightness(image, 0.3, seed=3),
            tf.image.random_contrast(image, 0.3, 1.5, seed=4),
            tf.image.random_hue(image, 0.3, seed=5),
            tf.image.random_saturation(image, 0.3, 1.5, seed=6),
            tf.image.random_crop(image, [3, 3, 3], seed=7),
        ]

    assert_same_fetches(build, rtol=1e-4)


def test_distorted_boxes_are_tensorflows_in_every_step():
    found = []
    boxes = np.array([[[0.1, 0.2, 0.6, 0.9], [0.5, 0.5, 0.9, 0.7]]], np.float32)
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default(), tf.Session() as sess:
            drawn = [
                tf.image.sample_distorted_bounding_box([50, 41, 3], boxes, seed=7),
                tf.image.sample_distorted_bounding_box(
                    [333, 500, 3],
                    boxes[:, :0],
                    seed=3,
                    seed2=9,
                    area_range=[0.08, 1.0],
                    aspect_ratio_range=[3 / 4, 4 / 3],
                    max_attempts=10,
                    use_image_if_no_bounding_boxes=True,
                ),
                tf.image.sample_distorted_bounding_box(
                    [20, 60, 3], boxes, seed=1, min_object_covered=0.9, area_range=[0.3, 0.4]
                ),
            ]
            flat = [part for box in drawn for part in (box.begin, box.size, box.bboxes)]
            found.append([[part.tolist() for part in sess.run(flat)] for _ in range(25)])
    assert found[0] == found[1]


# Files ------------------------------------------------------------------------------------------


def animation() -> bytes:
    frames = [Image.fromarray(np.roll(COLOUR, 5 * i, axis=1)) for i in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=100)
    return out.getvalue()


def deep(channels: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 65536, (9, 13, channels)).astype(np.uint16)


PALETTE = file(np.asarray(Image.fromarray(COLOUR).quantize(16).convert("RGB")), "PNG")


def few_bits() -> list[bytes]:
    """Files with a palette, with one bit for each pixel, and with a transparent colour."""
    quantized = Image.fromarray(COLOUR).quantize(16)
    out = []
    for image, how in (
        (quantized, {}),
        (quantized, {"transparency": 3}),
        (Image.fromarray(COLOUR).convert("1"), {}),
        (Image.fromarray(COLOUR), {"transparency": tuple(COLOUR[0, 0].tolist())}),
    ):
        buffer = io.BytesIO()
        image.save(buffer, "PNG", **how)
        out.append(buffer.getvalue())
    return out


FILES = {
    "animation": lambda tf: [tf.image.decode_gif(animation()), tf.image.decode_image(animation())],
    "16 bits, written": lambda tf: [
        tf.image.decode_png(tf.image.encode_png(deep(channels)), dtype=kind)
        for channels in (1, 3, 4)
        for kind in (tf.uint8, tf.uint16)
    ],
    "few bits": lambda tf: [
        tf.image.decode_png(content, channels) for content in few_bits() for channels in (0, 1, 3)
    ],
    # TensorFlow takes the opacity of files without any for as many bits as a pixel has.
    "opacity": lambda tf: [tf.image.decode_png(content, 4) for content in few_bits()[1::2]],
    "inks": lambda tf: tf.image.decode_jpeg(inks(), dct_method="INTEGER_ACCURATE"),
    "grey of 16 bits": lambda tf: tf.image.decode_png(
        tf.image.encode_png(deep(3)), channels=1, dtype=tf.uint16
    ),
    "quality": lambda tf: [
        tf.image.is_jpeg(HALVED.item()),
        tf.image.is_jpeg(PALETTE),
        tf.io.extract_jpeg_shape(HALVED.item()),
    ],
}


def inks() -> bytes:
    out = io.BytesIO()
    Image.fromarray(COLOUR).convert("CMYK").save(out, "JPEG", subsampling=0)
    return out.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_tensorflow_reads_them(name):
    assert_same_fetches(FILES[name])


def interlaced_deep_file() -> tuple[bytes, np.ndarray]:
    """TensorFlow's deep file of a picture: its filters are chosen row by row."""
    tf = tensorflow()
    image = (picture(31, 45, 3).astype(np.uint16) << 8) + 17
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(tf.image.encode_png(image)), image


def test_deep_files_of_tensorflow_are_read():
    content, image = interlaced_deep_file()
    with runnel.Graph().as_default(), runnel.Session() as sess:
        found = sess.run(runnel.image.decode_png(content, dtype=runnel.uint16))
    np.testing.assert_array_equal(found, image)


@pytest.mark.parametrize("size", [(61, 83), (5, 7), (1, 1)])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_jpeg_files_give_the_same_pixels_where_simplejpeg_is_installed(subsampling, size):
    pytest.importorskip("simplejpeg")
    contents = [
        file(picture(*size), "JPEG", quality=90, subsampling=subsampling, progressive=progressive)
        for progressive in (False, True)
    ]
    whole = {
        "dct_method": ["", "INTEGER_FAST", "INTEGER_ACCURATE"],
        "fancy_upscaling": [True, False],
    }
    ratios = [1] if min(size) < 8 else [1, 2, 4, 8]
    combinations = list(itertools.product(contents, [0, 1, 3], ratios, *whole.values()))
    assert_same_fetches(
        lambda tf: [
            tf.image.decode_jpeg(content, channels, ratio, **dict(zip(whole, how, strict=True)))
            for content, channels, ratio, *how in combinations
        ]
    )


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_jpeg_files_give_almost_the_same_by_default(subsampling):
    content = file(picture(61, 83), "JPEG", quality=90, subsampling=subsampling)
    found = []
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default(), tf.Session() as sess:
            exact = [
                tf.image.decode_jpeg(content, dct_method="INTEGER_ACCURATE"),
                tf.image.decode_jpeg(content, fancy_upscaling=False),
                tf.image.decode_jpeg(content, ratio=4, channels=1),
            ]
            near = [
                tf.image.decode_jpeg(content),
                tf.image.decode_jpeg(content, fancy_upscaling=False, dct_method="INTEGER_ACCURATE"),
                tf.image.decode_and_crop_jpeg(content, [4, 6, 30, 41]),
                tf.image.adjust_jpeg_quality(COLOUR, 60),
            ]
            found.append(sess.run([exact, near]))
    (our_exact, our_near), (exact, near) = found
    for ours, theirs in zip(our_exact, exact, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(our_near, near, strict=True):
        assert ours.shape == theirs.shape
        difference = np.abs(ours.astype(int) - theirs)
        assert difference.max() <= 12 and difference.mean() < 1


REFUSED = {
    "no image": lambda tf: tf.image.decode_jpeg(b"nonsense"),
    "nothing": lambda tf: tf.image.decode_png(b""),
    "a cut file": lambda tf: tf.image.decode_jpeg(HALVED.item()[:400]),
    "a header alone": lambda tf: tf.image.decode_png(PALETTE[:40]),
    "ratio": lambda tf: tf.image.decode_jpeg(HALVED.item(), ratio=3),
    "channels": lambda tf: tf.image.decode_jpeg(HALVED.item(), channels=4),
    "window": lambda tf: tf.image.decode_and_crop_jpeg(HALVED.item(), [20, 20, 20, 20]),
    "wrong op": lambda tf: tf.image.decode_bmp(PALETTE),
    "two channels": lambda tf: tf.image.encode_jpeg(COLOUR[..., :2]),
    "crop beyond": lambda tf: tf.image.crop_to_bounding_box(ONE, 3, 0, 3, 3),
    "no such image": lambda tf: tf.image.crop_and_resize(IMAGES, BOXES, [0, 2], [3, 3]),
    "empty": lambda tf: tf.image.resize_bilinear(IMAGES, [0, 3]),
    "both rules": lambda tf: tf.image.resize_bilinear(
        IMAGES, [3, 3], align_corners=True, half_pixel_centers=True
    ),
    "threshold": lambda tf: tf.image.non_max_suppression(BOXES, [0.1, 0.2], 2, 1.5),
    "no boxes": lambda tf: tf.image.sample_distorted_bounding_box(
        [9, 9, 3], np.zeros((1, 0, 4), np.float32)
    ),
    "two colours": lambda tf: tf.image.rgb_to_hsv(IMAGES[..., :2]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, tensorflow()):
        refusal = pytest.raises(
            (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError, ValueError)
        )
        with tf.Graph().as_default(), tf.Session() as sess, refusal:
            sess.run(REFUSED[name](tf))
