"""The messages of examples: ``Example``, ``SequenceExample`` and what they hold.

Field numbers and types are those of TensorFlow's ``example.proto`` and ``feature.proto``.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.message_types import (
    BYTES,
    FLOAT,
    INT64,
    MESSAGE,
    STRING,
    MessageTypes,
    many,
    one,
)

_CLASSES = MessageTypes(
    "example",
    {
        "BytesList": [many("value", 1, BYTES)],
        "FloatList": [many("value", 1, FLOAT)],
        "Int64List": [many("value", 1, INT64)],
        "Feature": [
            one("bytes_list", 1, MESSAGE, "BytesList"),
            one("float_list", 2, MESSAGE, "FloatList"),
            one("int64_list", 3, MESSAGE, "Int64List"),
        ],
        "Features": [many("feature", 1, MESSAGE, "Features.FeatureEntry")],
        "Features.FeatureEntry": [one("key", 1, STRING), one("value", 2, MESSAGE, "Feature")],
        "FeatureList": [many("feature", 1, MESSAGE, "Feature")],
        "FeatureLists": [many("feature_list", 1, MESSAGE, "FeatureLists.FeatureListEntry")],
        "FeatureLists.FeatureListEntry": [
            one("key", 1, STRING),
            one("value", 2, MESSAGE, "FeatureList"),
        ],
        "Example": [one("features", 1, MESSAGE, "Features")],
        "SequenceExample": [
            one("context", 1, MESSAGE, "Features"),
            one("feature_lists", 2, MESSAGE, "FeatureLists"),
        ],
    },
    choices={"Feature": "kind"},
)

BytesList: Any = _CLASSES["BytesList"]
FloatList: Any = _CLASSES["FloatList"]
Int64List: Any = _CLASSES["Int64List"]
Feature: Any = _CLASSES["Feature"]
Features: Any = _CLASSES["Features"]
FeatureList: Any = _CLASSES["FeatureList"]
FeatureLists: Any = _CLASSES["FeatureLists"]
Example: Any = _CLASSES["Example"]
SequenceExample: Any = _CLASSES["SequenceExample"]
