"""``tf.feature_column``: what models are told of their features."""

from runnel.feature_column.categorical_columns import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    crossed_column,
    weighted_categorical_column,
)
from runnel.feature_column.dense_columns import (
    bucketized_column,
    embedding_column,
    indicator_column,
    numeric_column,
    shared_embedding_columns,
)
from runnel.feature_column.models import input_layer, linear_model, make_parse_example_spec

__all__ = [
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "numeric_column",
    "shared_embedding_columns",
    "weighted_categorical_column",
]


def __dir__() -> list[str]:
    return __all__
