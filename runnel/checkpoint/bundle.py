"""Bundles: TensorFlow's second format of checkpoints, an index and files of data.

``PREFIX.index`` is a table (``runnel.checkpoint.table``) from a tensor's name to its type, shape,
place and checksum; ``PREFIX.data-00000-of-00001`` has the bytes. A tensor may be stored in slices,
each under a key of its own. Files appear under their names when they are complete, the index last.

A bundle that replaces another of its prefix leaves that readable until the new index is there: its
data are in files of another number of shards. Data are on the disk, under their name, before the
index has its name, and the index is before old data go: a power cut too leaves one or the other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from runnel.checkpoint.checksum import extend, masked, read_checked
from runnel.checkpoint.element_bytes import (
    parse_strings,
    parse_variants,
    pieces,
    stored_problem,
    string_checksum,
    variant_checksum,
)
from runnel.checkpoint.ordered_code import slice_key
from runnel.checkpoint.protos import message
from runnel.checkpoint.table import TableReader, TableWriter, parse
from runnel.checkpoint.tensor_slice import (
    Bounds,
    TensorSlice,
    assembled,
    covering,
    inside,
    overlap,
    sizes_of,
)
from runnel.checkpoint.whole_file import (
    appearing,
    begin_to_sync,
    make_folder,
    remove_files,
    sync_folder,
)
from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import DataLossError, InvalidArgumentError, NotFoundError
from runnel.mapped_array import let_go, row_blocks

_VERSION = 1
_MAX_SHARDS = 100_000
_SYNCED_AT_ONCE = 1 << 25
"""How many bytes the system is told of at a time that they are to be on the disk."""
_UNEVEN = {dtypes.string: string_checksum, dtypes.variant: variant_checksum}
"""Types whose elements differ in length, with what makes the checksum of an array."""


def data_file(prefix: str, shard: int, shards: int) -> str:
    """The name of a file with data."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def index_file(prefix: str) -> str:
    """The name of the file that says what is where."""
    return f"{prefix}.index"


def _go_on() -> None:
    """Nobody is waiting."""


class BundleWriter:
    """Writes the tensors that are added; the end of the block makes them a bundle.

    ``make_way`` is called after each small piece of work.
    """

    def __init__(self, prefix: str, make_way: Callable[[], None] = _go_on) -> None:
        self._prefix = prefix
        self._make_way = make_way
        make_folder(os.path.dirname(prefix))
        self._old = _shards_of(prefix)
        self._shards = 2 if self._old == 1 else 1
        self._entries: dict[bytes, Any] = {}
        self._offset = self._synced = 0
        self._stack = contextlib.ExitStack()
        self._file = self._stack.enter_context(appearing(data_file(prefix, 0, self._shards)))

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            self._stack.__exit__(kind, error, trace)
        else:
            self._finish()

    def add(self, name: str, array: Any, dtype: DType) -> None:
        """Adds a tensor."""
        if name.encode() in self._entries:
            raise InvalidArgumentError(None, None, f"The tensor {name!r} is given twice.")
        self._entries[name.encode()] = self._stored(np.asarray(array), dtype)

    def add_slice(
        self, name: str, shape: tuple[int, ...], part: TensorSlice, array: Any, dtype: DType
    ) -> None:
        """Adds a slice of a tensor of ``shape``."""
        array = np.asarray(array)
        sizes = tuple([b.stop - b.start for b in part.bounds(shape)])
        if array.shape != sizes:
            raise InvalidArgumentError(
                None,
                None,
                f"The slice {part} of {name!r} has the shape {sizes}, but the tensor that is to "
                f"be saved there has the shape {array.shape}.",
            )
        whole = self._entries.get(name.encode())
        if whole is None:
            whole = self._entries[name.encode()] = _entry(dtype, shape)
        elif not whole.slices or _shape_of(whole) != shape or whole.dtype != dtype.as_datatype_enum:
            raise InvalidArgumentError(
                None, None, f"The slices of {name!r} differ in the tensor that they belong to."
            )
        key = slice_key(name, part)
        if key in self._entries:
            raise InvalidArgumentError(None, None, f"The slice {part} of {name!r} is given twice.")
        part.as_proto(whole.slices.add())
        self._entries[key] = self._stored(array, dtype)

    def _stored(self, array: np.ndarray, dtype: DType) -> Any:
        entry = _entry(dtype, array.shape)
        entry.offset = self._offset
        crc = 0
        for piece in pieces(array, dtype):
            self._file.write(piece)
            self._offset += len(piece)
            if dtype not in _UNEVEN:
                crc = extend(crc, piece)
            if self._offset - self._synced >= _SYNCED_AT_ONCE:
                begin_to_sync(self._file, self._synced, self._offset)
                self._synced = self._offset
        entry.size = self._offset - entry.offset
        if dtype in _UNEVEN:
            crc = _UNEVEN[dtype](array)
        entry.crc32c = masked(crc)
        self._make_way()
        return entry

    def _finish(self) -> None:
        self._stack.close()
        written = data_file(self._prefix, 0, self._shards)
        with _gone_on_failure([written]):
            write_index(self._prefix, self._shards, self._entries, self._make_way)
        sync_folder(os.path.dirname(self._prefix))
        remove_files(data_file(self._prefix, shard, self._old) for shard in range(self._old))


@contextlib.contextmanager
def _gone_on_failure(files: list[str]) -> Iterator[None]:
    """Removes data that no index leads to when writing that index fails."""
    try:
        yield
    except Exception:  # no other: an interrupt may come when the index is there
        remove_files(files)
        raise


def _entry(dtype: DType, shape: Iterable[int]) -> Any:
    entry = message("BundleEntryProto")(dtype=dtype.as_datatype_enum)
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)
    return entry


def _shape_of(entry: Any) -> tuple[int, ...]:
    return tuple([dim.size for dim in entry.shape.dim])


def _shards_of(prefix: str) -> int:
    """How many files the data of the bundle that is there has; 0 if there is none."""
    try:
        with open(index_file(prefix), "rb") as file:
            header = TableReader(file, index_file(prefix)).get(b"")
            shards = parse(message("BundleHeaderProto")(), header or b"", prefix).num_shards
            return shards if 0 < shards <= _MAX_SHARDS else 0
    except (OSError, DataLossError):
        return 0


def write_index(
    prefix: str, shards: int, entries: dict[bytes, Any], make_way: Callable[[], None] = _go_on
) -> None:
    """Writes the index of a bundle whose data are there."""
    sync_folder(os.path.dirname(prefix))  # an index without its data must not be all that is left
    header = message("BundleHeaderProto")(num_shards=shards)
    header.version.producer = _VERSION
    with appearing(index_file(prefix)) as file:
        table = TableWriter(file)
        table.add(b"", header.SerializeToString())
        for key in sorted(entries):
            table.add(key, entries[key].SerializeToString())
            make_way()
        table.finish()


class BundleReader:
    """Reads tensors, and slices of them, from a bundle."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._name = index_file(prefix)
        try:
            file = open(self._name, "rb")  # noqa: SIM115 (closed below)
        except FileNotFoundError:
            raise NotFoundError(
                None, None, f"There is no checkpoint {prefix!r}: {self._name} does not exist."
            ) from None
        with file:
            entries = dict(TableReader(file, self._name))
        header = parse(message("BundleHeaderProto")(), entries.pop(b"", b""), self._name)
        if not 0 < header.num_shards <= _MAX_SHARDS or header.endianness not in (0, 1):
            raise DataLossError(None, None, f"{self._name} is damaged: it has no header.")
        if header.version.min_consumer > _VERSION:
            raise InvalidArgumentError(
                None, None, f"{self._name} was written by a newer format than can be read."
            )
        self.shards: int = header.num_shards
        self._swapped = header.endianness == 1
        self._entries = entries

    def entry(self, key: bytes) -> Any:
        """What the index says of a tensor or slice."""
        found = self._entries.get(key)
        if found is None:
            raise NotFoundError(
                None, None, f"The checkpoint {self._prefix!r} has no tensor {key.decode()!r}."
            )
        return parse(message("BundleEntryProto")(), found, self._name)

    def __iter__(self) -> Iterator[bytes]:
        """The keys of all tensors and slices."""
        return iter(self._entries)

    @property
    def size(self) -> int:
        """The bytes of all its files of data, as far as they are there."""
        files = (data_file(self._prefix, shard, self.shards) for shard in range(self.shards))
        return sum(os.path.getsize(file) for file in files if os.path.exists(file))

    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        found = [key for key in self._entries if not key.startswith(b"\0")]
        try:
            return [key.decode() for key in found]
        except UnicodeDecodeError as error:
            raise DataLossError(None, None, f"{self._name} is damaged: {error}.") from None

    def has(self, name: str) -> bool:
        """True for the name of a tensor that is there."""
        return name.encode() in self._entries

    def type_and_shape(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """What is stored under ``name``."""
        return self._described(self.entry(name.encode()), name)

    def _described(self, entry: Any, name: str) -> tuple[DType, tuple[int, ...]]:
        try:
            dtype = as_dtype(entry.dtype)
        except TypeError:
            raise self._damaged(name, f"its type is {entry.dtype}") from None
        shape = _shape_of(entry)
        if problem := stored_problem(dtype, shape):
            raise self._damaged(name, problem)
        return dtype, shape

    def _damaged(self, name: str, why: str) -> DataLossError:
        return DataLossError(
            None, None, f"{name!r} in the checkpoint {self._prefix!r} is damaged: {why}."
        )

    def tensor(self, name: str) -> np.ndarray:
        """The tensor ``name``."""
        entry = self.entry(name.encode())
        if not entry.slices:
            return self._read(entry, name)
        _, shape = self._described(entry, name)
        return self.slice(name, TensorSlice(((0, None),) * len(shape)))

    def slice(self, name: str, part: TensorSlice) -> np.ndarray:
        """A slice of the tensor ``name``, whether that is stored whole or in slices."""
        entry = self.entry(name.encode())
        dtype, shape = self._described(entry, name)
        try:
            if not entry.slices:
                return np.ascontiguousarray(self._read(entry, name)[part.bounds(shape)])
            parts = [TensorSlice.from_proto(proto) for proto in entry.slices]
            stored = [(p, partial(self._read_slice, name, p, dtype)) for p in parts]
            return assembled(shape, part, stored, dtype.np_dtype)
        except ValueError as error:
            raise InvalidArgumentError(
                None, None, f"{name!r} in the checkpoint {self._prefix!r}: {error}."
            ) from None

    def _read_slice(self, name: str, part: TensorSlice, dtype: DType) -> np.ndarray:
        entry = self.entry(slice_key(name, part))
        if entry.dtype != dtype.as_datatype_enum:
            raise self._damaged(name, f"the slice {part} has another type")
        return self._read(entry, name)

    def write_into(
        self, name: str, part: TensorSlice, array: np.ndarray, look: Callable[[], None]
    ) -> None:
        """Sets ``array`` to a slice of the tensor ``name``, of numbers, some rows at a time.

        ``look`` is called between them, and raises where it is to stop. What is damaged is found
        out at the end: the array is then not to be used.
        """
        entry = self.entry(name.encode())
        dtype, shape = self._described(entry, name)
        try:
            wanted = part.bounds(shape)
            if not entry.slices:
                all_of = tuple([slice(0, n) for n in shape])
                self._read_rows(entry, name, all_of, wanted, array, look)
                return
            slices = [TensorSlice.from_proto(proto) for proto in entry.slices]
            for other in covering(shape, part, slices):
                stored = self.entry(slice_key(name, other))
                if stored.dtype != dtype.as_datatype_enum:
                    raise self._damaged(name, f"the slice {other} has another type")
                self._read_rows(stored, name, other.bounds(shape), wanted, array, look)
        except ValueError as error:
            raise InvalidArgumentError(
                None, None, f"{name!r} in the checkpoint {self._prefix!r}: {error}."
            ) from None

    def _read_rows(
        self,
        entry: Any,
        name: str,
        bounds: Bounds,
        wanted: Bounds,
        array: np.ndarray,
        look: Callable[[], None],
    ) -> None:
        """Sets what ``entry``, at ``bounds`` of a tensor, has of ``array``, at ``wanted`` of it."""
        dtype, shape = self._described(entry, name)
        if shape != sizes_of(bounds):
            raise self._damaged(name, f"a slice has the shape {shape}")
        crc = 0
        with self._opened(entry, name) as file:
            for rows in row_blocks(shape, dtype.np_dtype):
                look()
                block = np.empty((rows.stop - rows.start, *shape[1:]), dtype.np_dtype)
                checked = read_checked(file, block, crc)
                if checked is None:
                    raise self._damaged(name, "its file is too short")
                crc = checked
                if self._swapped:
                    block.byteswap(inplace=True)
                first = bounds[0].start
                place = (slice(first + rows.start, first + rows.stop), *bounds[1:])
                both = overlap(wanted, place)
                if both is not None:
                    here = inside(both, wanted)
                    array[here] = block[inside(both, place)]
                    let_go(array[here])
        if masked(crc) != entry.crc32c:
            raise self._damaged(name, "its checksum is wrong")

    @contextlib.contextmanager
    def _opened(self, entry: Any, name: str) -> Iterator[Any]:
        """The file that has what ``entry`` is about, at its place."""
        dtype, shape = self._described(entry, name)
        count = prod(shape)
        if dtype not in _UNEVEN and count * dtype.size != entry.size:
            raise self._damaged(name, f"{entry.size} bytes are not its {count} elements")
        if not 0 <= entry.shard_id < self.shards or entry.offset < 0 or entry.size < 0:
            raise self._damaged(name, "its place is not in any file")
        file = data_file(self._prefix, entry.shard_id, self.shards)
        try:
            opened = open(file, "rb")  # noqa: SIM115 (closed below)
        except FileNotFoundError:
            raise DataLossError(
                None, None, f"The checkpoint {self._prefix!r} is incomplete: {file} is missing."
            ) from None
        with opened:
            if entry.offset + entry.size > os.fstat(opened.fileno()).st_size:
                raise self._damaged(name, f"{file} is too short")
            opened.seek(entry.offset)
            yield opened

    def _read(self, entry: Any, name: str) -> np.ndarray:
        dtype, shape = self._described(entry, name)
        is_uneven = dtype in _UNEVEN
        with self._opened(entry, name) as file:
            # An array of its own, and no view: who keeps it need not copy it.
            kind, sizes = (np.uint8, entry.size) if is_uneven else (dtype.np_dtype, shape)
            found = np.empty(sizes, kind)
            crc = read_checked(file, found)
        if crc is None:
            raise self._damaged(name, "its file is too short")
        if is_uneven:
            try:
                if dtype is dtypes.variant:  # each has a checksum of its own
                    return parse_variants(found.tobytes(), shape)
                found = parse_strings(found.tobytes(), shape)
            except DataLossError as error:
                raise self._damaged(name, error.message) from None
            crc = string_checksum(found)
        if masked(crc) != entry.crc32c:
            raise self._damaged(name, "its checksum is wrong")
        if self._swapped and not is_uneven:
            found.byteswap(inplace=True)
        return found


def merge(prefixes: Iterable[str], destination: str) -> None:
    """Makes one bundle of several, whose files are moved."""
    prefixes = list(prefixes)
    readers = [BundleReader(prefix) for prefix in prefixes]
    shards = sum(reader.shards for reader in readers)
    old = _shards_of(destination)
    if old == shards:  # whose files stay what they are until the new index is there
        shards += 1
    entries: dict[bytes, Any] = {}
    moves: list[tuple[str, str]] = []
    first = 0
    for prefix, reader in zip(prefixes, readers, strict=True):
        for key in reader:
            entry = reader.entry(key)
            entry.shard_id += first
            known = entries.get(key)
            if known is None:
                entries[key] = entry
            elif known.slices and entry.slices and _shape_of(known) == _shape_of(entry):
                known.slices.extend(entry.slices)
            else:
                raise InvalidArgumentError(
                    None, None, f"The tensor {key.decode()!r} is in several of {prefixes}."
                )
        for shard in range(reader.shards):
            source = data_file(prefix, shard, reader.shards)
            moves.append((source, data_file(destination, first + shard, shards)))
        first += reader.shards
    make_folder(os.path.dirname(destination))
    with _gone_on_failure([target for _, target in moves]):
        for source, target in moves:
            if os.path.exists(source):  # a bundle that replaced one may lack a file
                os.replace(source, target)
        write_index(destination, shards, entries)
    sync_folder(os.path.dirname(destination))
    remove_files(data_file(destination, shard, old) for shard in range(old))
    remove_files(index_file(prefix) for prefix in prefixes if prefix != destination)
