"""The content of registered files for workers on Ray."""

from __future__ import annotations

from pathlib import Path

from flinkpy.cluster.files.job_files import ContentOf, chunks_of, packed
from flinkpy.connectors.memory.pieces import Pieces
from flinkpy.connectors.ray.object_store import is_own, keep
from flinkpy.connectors.ray.stored_pieces import BLOCK_BYTES, SMALL_BYTES, StoredPieces
from flinkpy.core.errors import ConfigurationError
from flinkpy.runtime.files.cached_files import Content, FromBlocks

CARRIED_BYTES = 100 << 20
"""A job that outlives its program carries files up to this size."""

_stored: dict[str, StoredPieces] = {}  # by digest: this program's files that are in the store


def content_for_workers(*, outlives_program: bool) -> ContentOf:
    """How workers of this job get at the content of a file."""

    def content_of(path: Path, digest: str) -> Content:
        if path.is_file():
            return FromBlocks(_blocks(path, path, digest))
        archive = packed(path)
        try:
            return FromBlocks(_blocks(archive, path, digest), is_folder=True)
        finally:
            archive.unlink()

    def _blocks(file: Path, path: Path, digest: str) -> Pieces:
        size = file.stat().st_size
        if outlives_program and size > CARRIED_BYTES:
            raise ConfigurationError(
                "register_cached_file(): a job that outlives its program (-d) carries "
                f"its files, and {path} has "
                f"{size >> 20} MB, more than {CARRIED_BYTES >> 20}: register a URL that "
                "workers can read (s3://...)"
            )
        if outlives_program or size <= SMALL_BYTES:
            return _pieces(file, max(1, size))
        return _in_store(file, digest)

    return content_of


def _pieces(file: Path, size: int) -> Pieces:
    blocks = list(chunks_of(file, size))
    return Pieces(blocks, [1] * len(blocks))


def _in_store(file: Path, digest: str) -> StoredPieces:
    """Puts it into the store, once for all jobs of this program, where it stays until the program
    ends."""
    known = _stored.get(digest)
    if known is None or not is_own(known.keeper):  # the program has since connected to another Ray
        count = -(-file.stat().st_size // BLOCK_BYTES)
        known = _stored[digest] = StoredPieces(keep(chunks_of(file, BLOCK_BYTES)), [1] * count)
    return known
