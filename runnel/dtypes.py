"""``tf.dtypes``: element types."""

from runnel.graph.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from runnel.graph.dtypes import bool_ as bool  # noqa: A004 (TensorFlow's name)
from runnel.ops.casting import cast, saturate_cast
from runnel.ops.complex_numbers import complex  # noqa: A004 (TensorFlow's name)
from runnel.ops.strings.conversions import as_string

QUANTIZED_DTYPES = frozenset({qint8, qint16, qint32, quint8, quint16})

__all__ = [
    "DType",
    "QUANTIZED_DTYPES",
    "as_dtype",
    "as_string",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "qint8",
    "qint16",
    "qint32",
    "quint8",
    "quint16",
    "resource",
    "saturate_cast",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variant",
]


def __dir__() -> list[str]:
    return __all__
