"""Compressed state: blocks of up to a megabyte, each with its two lengths before it, so that
neither side holds all of it at once.

What is compressed says so in its handle, so any job reads it, whatever its own option says. Length
and checksum in the handle are of what is stored."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.files.large_bytes import Data

ZSTD = "zstd"  # the name in handles and manifests
_BLOCK = 1 << 20
_LENGTHS = struct.Struct("<II")  # of the bytes, and of what stands for them


def compressed(chunks: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """The state in its stored form.

    >>> b"".join(decompressed(b"".join(compressed([b"ab" * 1000])), "a file")) == b"ab" * 1000
    True
    """
    block = bytearray()
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        while len(view):
            taken = view[: _BLOCK - len(block)]
            block += taken
            view = view[len(taken) :]
            if len(block) == _BLOCK:
                yield _packed(block)
                block = bytearray()
    if block:
        yield _packed(block)


def decompressed(data: Data, where: str) -> Iterator[bytes]:
    """The state again, block by block. Raises CheckpointDamagedError, which names ``where`` it
    stands, if nobody can have written this."""
    view, codec = memoryview(data), _codec()
    while len(view):
        try:
            length, stored = _LENGTHS.unpack_from(view)
            block = view[_LENGTHS.size : _LENGTHS.size + stored]
            if length > _BLOCK or len(block) != stored:
                raise ValueError("a block of another length")
            plain: bytes = codec.decompress(block, length, asbytes=True)
        except (struct.error, ValueError, OSError) as error:  # Arrow's errors are among them
            raise CheckpointDamagedError(
                where, "compressed state", f"other bytes ({error})"
            ) from error
        yield plain
        view = view[_LENGTHS.size + stored :]


def _packed(block: bytearray) -> bytes:
    stored: bytes = _codec().compress(block, asbytes=True)
    return _LENGTHS.pack(len(block), len(stored)) + stored


@lru_cache(maxsize=1)
def _codec() -> Any:
    import pyarrow as pa  # for those who compress

    return pa.Codec(ZSTD)
