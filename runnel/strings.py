"""``tf.strings``: strings."""

from runnel.ops.printing import string_format as format  # noqa: A004 (TensorFlow's name)
from runnel.ops.string_join import string_join as join
from runnel.ops.strings.characters import string_length as length
from runnel.ops.strings.characters import string_lower as lower
from runnel.ops.strings.characters import string_strip as strip
from runnel.ops.strings.characters import string_upper as upper
from runnel.ops.strings.characters import substr
from runnel.ops.strings.conversions import as_string
from runnel.ops.strings.conversions import string_to_number as to_number
from runnel.ops.strings.hash_buckets import string_to_hash_bucket as to_hash_bucket
from runnel.ops.strings.hash_buckets import string_to_hash_bucket_fast as to_hash_bucket_fast
from runnel.ops.strings.hash_buckets import string_to_hash_bucket_strong as to_hash_bucket_strong
from runnel.ops.strings.ngrams import ngrams
from runnel.ops.strings.regular_expressions import regex_full_match, regex_replace
from runnel.ops.strings.splitting import reduce_join, unsorted_segment_join
from runnel.ops.strings.splitting import string_bytes_split as bytes_split
from runnel.ops.strings.splitting import string_split_v2 as split
from runnel.ops.strings.unicode import unicode_transcode
from runnel.ops.strings.unicode_characters import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
)
from runnel.ops.strings.unicode_scripts import unicode_script

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_script",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]


def __dir__() -> list[str]:
    return __all__
