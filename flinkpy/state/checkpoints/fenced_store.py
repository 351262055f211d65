"""Files that only the present leader of a cluster writes.

::

    <folder>/token-0000000003     there is one for each term; the highest is the present one
    <folder>/jobs/<job>/graph     whatever the leader keeps

Two rules make the store safe, though no file system knows of leaders. Who becomes leader first
creates the token of its term, which succeeds for one process only, and then reads. Who writes first
writes, and then looks for a token of a later term: if there is one, the write counts as refused. So
a later leader either reads what an earlier one has written, or the earlier one is told that it was
too late. A refused write may be read by the later leader all the same.

The first rule needs a store that creates a file only if it is absent. Disks do; what Arrow knows
looks and then writes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.core.errors import FencingError
from flinkpy.core.ids import FencingToken
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import join

LOG = engine_logger(__name__)

_TOKEN = re.compile(r"token-([0-9]{10})")
_HEAD = b"flinkpy 1 %08x %d\n"


@dataclass(frozen=True)
class Term:
    """The time in which one process leads. A later term has a higher number."""

    number: int
    token: FencingToken


class FencedStore:
    """All calls block, and raise an OSError when the store fails: what was asked for may have
    happened or not.

    >>> from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore
    >>> files = SimulatedFileStore()
    >>> old, new = FencedStore(files, "ha"), FencedStore(files, "ha")
    >>> old.take_term(FencingToken("a")).number, new.take_term(FencingToken("b")).number
    (1, 2)
    >>> old.write("graph", b"...")
    Traceback (most recent call last):
    ...
    flinkpy.core.errors.FencingError: term 1 in ha is over: another JobManager leads there in term 2
    """

    def __init__(self, files: FileStore, folder: str) -> None:
        self._files, self.folder = files, folder
        self._term = 0

    # -- terms -------------------------------------------------------------------------------------

    def take_term(self, token: FencingToken) -> Term:
        """Begins a term later than all before. Earlier leaders cannot write any more when this
        returns."""
        while True:
            number = self._highest_term() + 1
            try:
                self._files.write_atomically(self._token_file(number), [_framed(token.encode())])
            except FileExistsError:
                continue  # another process was faster
            self._term = number
            return Term(number, token)

    def confirm_term(self) -> None:
        """Raises FencingError if a later term has begun. What was written before this call counts,
        if it returns."""
        highest = self._highest_term()
        if highest != self._term:
            raise FencingError(
                f"term {self._term} in {self.folder} is over: another JobManager leads "
                f"there in term {highest}"
            )

    def forget_earlier_terms(self) -> None:
        """Deletes the tokens of earlier terms. That of the present one stays."""
        for number in self._terms():
            if number < self._term:
                self._files.delete(self._token_file(number))

    def _highest_term(self) -> int:
        return max(self._terms(), default=0)

    def _terms(self) -> list[int]:
        matches = map(_TOKEN.fullmatch, self._files.list(self.folder))
        return [int(match[1]) for match in matches if match]

    def _token_file(self, number: int) -> str:
        return join(self.folder, f"token-{number:010}")

    # -- files -------------------------------------------------------------------------------------

    def write(self, name: str, body: bytes) -> None:
        """Writes a file of this name, once. FileExistsError if there is one; FencingError if this
        term is over."""
        self._files.write_atomically(self._file(name), [_framed(body)])
        self.confirm_term()

    def read(self, name: str) -> bytes | None:
        """What was written under this name. None if nothing was, or if the file is not intact: then
        whoever wrote it died before it was told that it had."""
        try:
            found = self._files.read(self._file(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        head, _, body = found.partition(b"\n")
        if head + b"\n" != _HEAD % (zlib.crc32(body), len(body)):
            LOG.warning("%s is not intact, and is ignored", self._file(name))
            return None
        return body

    def delete(self, name: str) -> None:
        """Removes the file. Nothing, if there is none."""
        self._files.delete(self._file(name))

    def delete_folder(self, name: str) -> None:
        """Removes the folder with all that is in it."""
        self._files.delete_dir(self._file(name))

    def delete_all(self) -> None:
        """The cluster has ended for good: removes everything, the tokens last."""
        self.delete_folder("jobs")
        self._files.delete_dir(self.folder)

    def names(self, name: str) -> Sequence[str]:
        """The names of the files and folders in this folder."""
        return self._files.list(self._file(name))

    def _file(self, name: str) -> str:
        return join(self.folder, *name.split("/"))

    def __repr__(self) -> str:
        return f"<FencedStore {self.folder}, term {self._term}>"


def _framed(body: bytes) -> bytes:
    return _HEAD % (zlib.crc32(body), len(body)) + body
