"""``tf.image``: images."""

from runnel.ops.image.adjustment import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    per_image_standardization,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
)
from runnel.ops.image.bounding_boxes import draw_bounding_boxes, sample_distorted_bounding_box
from runnel.ops.image.colour_spaces import (
    grayscale_to_rgb,
    hsv_to_rgb,
    rgb_to_grayscale,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from runnel.ops.image.comparison import (
    image_gradients,
    psnr,
    sobel_edges,
    ssim,
    ssim_multiscale,
    total_variation,
)
from runnel.ops.image.crop_and_resize import crop_and_resize
from runnel.ops.image.decode_image import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
)
from runnel.ops.image.frames import (
    ResizeMethod,
    central_crop,
    crop_to_bounding_box,
    pad_to_bounding_box,
    resize_image_with_crop_or_pad,
    resize_image_with_pad,
    resize_images,
)
from runnel.ops.image.frames import resize_image_with_crop_or_pad as resize_with_crop_or_pad
from runnel.ops.image.frames import resize_images as resize
from runnel.ops.image.glimpse import extract_glimpse
from runnel.ops.image.image_dtype import convert_image_dtype
from runnel.ops.image.jpeg import (
    adjust_jpeg_quality,
    decode_and_crop_jpeg,
    encode_jpeg,
    extract_jpeg_shape,
    is_jpeg,
    random_jpeg_quality,
)
from runnel.ops.image.non_max_suppression import (
    combined_non_max_suppression,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from runnel.ops.image.orientation import (
    flip_left_right,
    flip_up_down,
    random_flip_left_right,
    random_flip_up_down,
    rot90,
    transpose,
)
from runnel.ops.image.orientation import transpose as transpose_image
from runnel.ops.image.patches import extract_image_patches, extract_patches
from runnel.ops.image.png import encode_png
from runnel.ops.image.resize import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
)
from runnel.ops.sampling.random_crop import random_crop

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_image_patches",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_image_with_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "resize_with_crop_or_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "total_variation",
    "transpose",
    "transpose_image",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


def __dir__() -> list[str]:
    return __all__
