"""A collection that grows by chunks and never changes: a snapshot may keep it while its key gets
more values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

C = TypeVar("C", bound=Sized)


class Chunks(Generic[C]):
    """Chunks, each more than twice as large as the next: so there are few, and each value is copied
    seldom."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: tuple[C, ...]) -> None:
        self.chunks = chunks

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def with_chunk(self, chunk: C, join: Callable[[C, C], C]) -> Chunks[C]:
        """These values and more; ``join`` makes one chunk of two."""
        *chunks, newest = (*self.chunks, chunk)
        while chunks and len(chunks[-1]) <= 2 * len(newest):
            newest = join(chunks.pop(), newest)
        return Chunks((*chunks, newest))


def by_group(
    values: Any, codes: npt.NDArray[np.int64] | None
) -> Iterator[tuple[int, list[Chunks[Any]], list[Any]]]:
    """For each group that there is, its accumulators and its single values, some of which may be
    None."""
    import numpy as np

    if codes is None:
        codes = np.zeros(len(values), np.int64)
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    listed, ends = values[order].tolist(), [*starts[1:].tolist(), len(values)]
    for group, start, end in zip(found.tolist(), starts.tolist(), ends):
        of_group = listed[start:end]
        if Chunks not in set(map(type, of_group)):
            yield group, [], of_group
        else:
            yield (
                group,
                [each for each in of_group if type(each) is Chunks],
                [each for each in of_group if type(each) is not Chunks],
            )
