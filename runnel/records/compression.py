"""How record files are compressed: ``TFRecordOptions``, and reading what is compressed."""

from __future__ import annotations

import zlib
from typing import Any, ClassVar

_WINDOW = 15
_GZIP = 16  # added to the size of the window: zlib's sign for gzip's header
_CHUNK = 1 << 16
_INPUT_BUFFER = 256 << 10
"""How many bytes TensorFlow puts together before it compresses them."""


class TFRecordCompressionType:
    """The kinds of compression."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a record file is compressed, with zlib's settings; None leaves one to zlib.

    Example:
        >>> options = tf.io.TFRecordOptions("GZIP", compression_level=9)
        >>> writer = tf.io.TFRecordWriter("train.tfrecord.gz", options)
    """

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)  # refuses what is not one
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The name of a kind: ``options`` are a name, a number of the class above, or options."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return options
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def compressor(self) -> Any:
        """An object of zlib that compresses as these options say; None for no compression."""
        kind = self.get_compression_type_string(self)
        if not kind:
            return None
        usual = {
            "compression_level": zlib.Z_DEFAULT_COMPRESSION,
            "compression_method": zlib.DEFLATED,
            "window_bits": _WINDOW + (_GZIP if kind == "GZIP" else 0),
            "mem_level": zlib.DEF_MEM_LEVEL,
            "compression_strategy": zlib.Z_DEFAULT_STRATEGY,
        }
        given = {name: getattr(self, name) for name in usual}
        settings: list[Any] = [usual[n] if given[n] is None else given[n] for n in usual]
        return _Deflated(
            zlib.compressobj(*settings),
            self.flush_mode or zlib.Z_NO_FLUSH,
            self.input_buffer_size or _INPUT_BUFFER,
        )


class _Deflated:
    """Compresses what is put together in a buffer, and flushes as asked whenever that is full.

    Where it is flushed decides the bytes: that is when TensorFlow's buffer of this size is full.
    """

    def __init__(self, stream: Any, mode: int, size: int) -> None:
        self._stream, self._mode, self._size = stream, mode, size
        self._buffer = bytearray()

    def compress(self, content: bytes) -> bytes:
        if self._mode == zlib.Z_NO_FLUSH:
            return self._stream.compress(content)  # type: ignore[no-any-return]
        out = b""
        if len(self._buffer) + len(content) > self._size:
            out = self._deflate(self._mode)
        self._buffer += content
        if len(content) > self._size:
            out += self._deflate(self._mode)
        return out

    def _deflate(self, mode: int) -> bytes:
        if not self._buffer:
            return b""
        out = self._stream.compress(bytes(self._buffer))
        self._buffer.clear()
        return out + self._stream.flush(mode)  # type: ignore[no-any-return]

    def flush(self, mode: int = zlib.Z_FINISH) -> bytes:
        rest = self._stream.compress(bytes(self._buffer))
        self._buffer.clear()
        return rest + self._stream.flush(mode)  # type: ignore[no-any-return]


class Inflated:
    """What a compressed file holds, read from its beginning to its end.

    Everything before a place where the file is damaged or cut can be read.
    """

    def __init__(self, file: Any, kind: str) -> None:
        self._file = file
        self._bits = _WINDOW + (_GZIP if kind == "GZIP" else 0)
        self._begin()

    def _begin(self) -> None:
        self._file.seek(0)
        self._stream = zlib.decompressobj(self._bits)
        self._ready = bytearray()
        self._position = 0
        self.damage: str | None = None
        """Why nothing can be read beyond what has been."""

    def seek(self, offset: int) -> None:
        """Goes to a place of what the file holds; back only by way of the beginning."""
        if offset < self._position:
            self._begin()
        while offset > self._position and self.read(min(_CHUNK, offset - self._position)):
            pass

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes, or fewer at the end or before damage."""
        while len(self._ready) < count and self._more():
            pass
        with memoryview(self._ready) as ready:
            taken = bytes(ready[:count])
        del self._ready[:count]
        self._position += len(taken)
        return taken

    def _more(self) -> bool:
        """Inflates a piece of the file; False at its end."""
        if self.damage is not None:
            return False
        if self._stream.eof:  # another file may follow in the same file, as gzip allows
            rest = self._stream.unused_data or self._file.read(_CHUNK)
            if not rest:
                return False
            self._stream = zlib.decompressobj(self._bits)
        else:
            rest = self._file.read(_CHUNK)
            if not rest:
                return False
        before = self._stream.copy()
        try:
            self._ready += self._stream.decompress(rest)
        except zlib.error as error:
            self.damage = str(error)
            # What stands before the damage in this piece: byte for byte, up to it.
            for place in range(len(rest)):
                try:
                    self._ready += before.decompress(rest[place : place + 1])
                except zlib.error:
                    break
        return True

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
