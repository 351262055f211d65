"""Ports as options name them: one, several, or a range of them, as in Flink."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
LARGEST_PORT = 65535
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
_PART = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")


@dataclass(frozen=True)
class Ports:
    """Ports of which one is wanted, in the order in which they are tried; 0 is any free one.

    >>> list(Ports.parse("8081, 9000-9002")), str(Ports.parse("8081"))
    ([8081, 9000, 9001, 9002], '8081')
    """

    ranges: tuple[range, ...]

    @staticmethod
    def parse(text: str) -> Ports:
        """Raises ValueError for anything else."""
        return Ports(tuple(_range(part, text) for part in text.split(",")))

    @staticmethod
    def of(port: int | Ports) -> Ports:
        """The same, also for a single one."""
        return port if isinstance(port, Ports) else Ports((range(port, port + 1),))

    def __iter__(self) -> Iterator[int]:
        for each in self.ranges:
            yield from each

    def __str__(self) -> str:
        return ",".join(
            f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in self.ranges
        )

    def first(self, listen: Callable[[int], T]) -> T:
        """What ``listen`` gives for the first port that can be had. Raises its OSError if none can,
        and at once if the port is not the reason."""
        taken: OSError | None = None
        for port in self:
            try:
                return listen(port)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
                taken = error
        assert taken is not None
        raise taken


def _range(part: str, text: str) -> range:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(
            f"{text!r} is no port, such as 8081, and no range of them, such as 8081-8090"
        )
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    if max(first, last) > LARGEST_PORT:
        raise ValueError(f"{max(first, last)} is too large; it must be at most {LARGEST_PORT}")
    if last < first:
        raise ValueError(f"{part.strip()!r} has its ends the wrong way round; write {last}-{first}")
    return range(first, last + 1)
