"""Datasets of tables: comma-separated values, databases, files of examples."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from runnel.data.dataset import AUTOTUNE, Dataset
from runnel.data.element_structure import TensorSpec, component_attrs, structure_from
from runnel.data.grouping import ignore_errors as ignoring_errors
from runnel.data.interleaving import parallel_interleave
from runnel.data.readers import TFRecordDataset
from runnel.gfile import glob, open_binary
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.ops.data import collecting_ops
from runnel.ops.parsing.parse_example import parse_example


class CsvDataset(Dataset):
    """The records of files of comma-separated values, one tensor for each column.

    ``record_defaults`` has for each column its type, where it must not be empty, or the value where
    it is.

    Example:
        >>> tf.data.experimental.CsvDataset("people.csv", [tf.string, 0], header=True)
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: Any = False,
        field_delim: Any = ",",
        use_quote_delim: Any = True,
        na_value: Any = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_default(one) for one in record_defaults]
        structure = tuple(TensorSpec((), one.dtype) for one in defaults)
        variant = collecting_ops.csv_op(
            convert_to_tensor(filenames, dtypes.string),
            convert_to_tensor(compression_type or "", dtypes.string),
            convert_to_tensor(buffer_size or 4 << 20, dtypes.int64),
            convert_to_tensor(header, dtypes.bool_),
            convert_to_tensor(field_delim, dtypes.string),
            convert_to_tensor(use_quote_delim, dtypes.bool_),
            convert_to_tensor(na_value, dtypes.string),
            convert_to_tensor(np.array(select_cols or [], np.int64)),
            defaults,
            **component_attrs(structure),
        )
        super().__init__(variant, structure)


def _default(value: Any) -> Any:
    if isinstance(value, DType):
        return convert_to_tensor(np.empty(0, value.np_dtype), value)
    return convert_to_tensor(value)


class SqlDataset(Dataset):
    """The rows that a query of a database (``driver_name`` is "sqlite") gives.

    Example:
        >>> tf.data.experimental.SqlDataset("sqlite", "a.db", "SELECT n FROM t", (tf.int32,))
    """

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        structure = structure_from(output_types, tuple(() for _ in output_types))
        texts = [convert_to_tensor(t) for t in (driver_name, data_source_name, query)]
        super().__init__(collecting_ops.sql_op(*texts, **component_attrs(structure)), structure)


def _files(file_pattern: Any) -> list[str]:
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    found = sorted(path for pattern in patterns for path in glob(pattern))
    if not found:
        raise ValueError(f"No files match {file_pattern!r}.")
    return found


def _arranged(
    dataset: Dataset, num_epochs: int | None, shuffle: bool, size: int, seed: Any
) -> Dataset:
    """As often as asked, and shuffled if asked."""
    if shuffle:
        dataset = dataset.shuffle(size, seed)
    return dataset if num_epochs == 1 else dataset.repeat(num_epochs)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: dict[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = AUTOTUNE,
    reader_num_threads: int = 1,
    parser_num_threads: int = 2,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of parsed examples of the files that match a pattern.

    Example:
        >>> tf.data.experimental.make_batched_features_dataset("*.tfrecord", 32, features)
    """
    paths = Dataset.from_tensor_slices(_files(file_pattern))
    if shuffle:
        paths = paths.shuffle(len(_files(file_pattern)), shuffle_seed)
    args = tuple(reader_args or ())
    records = paths.apply(
        parallel_interleave(
            lambda path: reader(path, *args), max(1, reader_num_threads), sloppy=sloppy_ordering
        )
    )
    records = _arranged(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, drop_final_batch or num_epochs is None)

    def parsed(texts: Any) -> Any:
        made = parse_example(texts, features)
        if label_key is None:
            return made
        return made, made.pop(label_key)

    return batches.map(parsed, parser_num_threads).prefetch(prefetch_buffer_size)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: Any,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = AUTOTUNE,
    num_parallel_reads: int = 1,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of the columns of files of comma-separated values, by their names.

    The names come from the first line, the types from the first rows of all files, unless they are
    given. Threads read ``num_parallel_reads`` files, whose rows come in turn; with ``sloppy`` a
    file that is not ready is passed over. With ``label_name`` an element is a pair of the other
    columns and that one.

    Example:
        >>> batches = tf.data.experimental.make_csv_dataset("people.csv", 32, label_name="age")
    """
    paths = _files(file_pattern)
    if column_names is None or column_defaults is None:
        if compression_type not in (None, "", "GZIP"):
            raise ValueError(
                f"Columns are not looked for in files of compression_type {compression_type!r}. "
                "Give column_names and column_defaults."
            )
    form = (field_delim, use_quote_delim, compression_type)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        firsts = [next(_rows([path], *form), []) for path in paths]
        column_names = firsts[0]
        if any(first != firsts[0] for first in firsts):
            raise ValueError("Files provided have different column names in header row.")
    names = list(column_names)
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = [names.index(c) if isinstance(c, str) else int(c) for c in select_columns or names]
    chosen = sorted(chosen)
    if column_defaults is None:
        body = list(itertools.islice(_body(paths, *form, header), num_rows_for_inference))
        for row in body:
            if len(row) != len(names):
                raise ValueError(
                    f"Problem inferring types: CSV row {row} has {len(row)} fields. Expected: "
                    f"{len(names)}."
                )
        column_defaults = [_inferred([r[c] for r in body], na_value) for c in chosen]
    kept = [names[c] for c in chosen]
    if label_name is not None and label_name not in kept:
        raise ValueError(f"`label_name` provided must be one of the columns: {kept}")

    def read(path: Any) -> Dataset:
        made: Dataset = CsvDataset(
            path,
            column_defaults,
            compression_type,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            chosen,
        )
        return made.apply(ignoring_errors()) if ignore_errors else made

    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    records = files.apply(parallel_interleave(read, max(1, num_parallel_reads), sloppy=sloppy))
    records = _arranged(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)

    def by_name(*columns: Any) -> Any:
        made = dict(zip(kept, columns, strict=True))
        if label_name is None:
            return made
        return made, made.pop(label_name)

    batches = records.batch(batch_size, drop_remainder=num_epochs is None)
    return batches.map(by_name).prefetch(prefetch_buffer_size)


def _rows(
    paths: list[str], delimiter: str, quotes: bool, compression: str | None
) -> Iterator[list[str]]:
    """The lines of the files, one file after the other, as texts."""
    quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    for path in paths:
        with ExitStack() as opened:
            file: Any = opened.enter_context(open_binary(path))
            if compression == "GZIP":
                file = opened.enter_context(gzip.open(file))
            text = io.TextIOWrapper(file, "utf-8", newline="")
            yield from filter(None, csv.reader(text, delimiter=delimiter, quoting=quoting))


def _body(
    paths: list[str], delimiter: str, quotes: bool, compression: str | None, header: bool
) -> Iterator[list[str]]:
    """The lines of the files but for their first, where that has the names."""
    for path in paths:
        yield from itertools.islice(
            _rows([path], delimiter, quotes, compression), int(header), None
        )


_KINDS = (np.int32, np.int64, np.float32, np.float64)


def _inferred(texts: list[str], missing: str) -> Any:
    """The type of a column with these ``texts``, and its value where it is empty."""
    given = [text for text in texts if text not in ("", missing)]
    for kind in _KINDS if given else ():
        if all(_is_of(text, kind) for text in given):
            return np.array([0], kind)
    return convert_to_tensor([b""], dtypes.string)


def _is_of(text: str, kind: Any) -> bool:
    """Whether ``text`` is a number that ``kind`` has."""
    limits: Any = np.iinfo(kind) if issubclass(kind, np.integer) else np.finfo(kind)
    try:
        number = int(text) if issubclass(kind, np.integer) else float(text)
    except ValueError:
        return False
    return bool(limits.min <= number <= limits.max)
