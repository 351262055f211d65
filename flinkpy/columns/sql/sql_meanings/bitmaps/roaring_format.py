"""The bytes of a bitmap: the portable form of Roaring bitmaps, that Flink and others read.

Numbers of 32 bits are kept in containers by their high 16 bits. A container is the list of its low
halves, or 8 KiB of bits when it has more than 4096 numbers, or a list of runs where that is the
shortest."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

PLAIN_COOKIE = 12346  # no container is a list of runs
RUNS_COOKIE = 12347
MOST_LISTED = 4096
BYTES_OF_BITS = 8192
FEWEST_WITH_OFFSETS = 4  # containers, where some are lists of runs

MALFORMED = "these bytes are no bitmap in the portable form of Roaring bitmaps"


def roaring_bytes(numbers: Iterable[int]) -> bytes:
    """The bytes of a set of numbers from 0 to 2**32 - 1."""
    containers: dict[int, list[int]] = {}
    for number in sorted(numbers):
        containers.setdefault(number >> 16, []).append(number & 0xFFFF)
    counts = [len(each) for each in containers.values()]
    runs = [_runs_of(each) for each in containers.values()]
    is_runs = [are_shorter(len(each), count) for each, count in zip(runs, counts)]
    bodies = [
        struct.pack(f"<{1 + 2 * len(few)}H", len(few), *(part for run in few for part in run))
        if chosen
        else _body(lows)
        for lows, few, chosen in zip(containers.values(), runs, is_runs)
    ]
    sizes = [len(each) for each in bodies]
    return head(list(containers), counts, is_runs, sizes) + b"".join(bodies)


def head(
    keys: Sequence[int], counts: Sequence[int], is_runs: Sequence[bool], sizes: Sequence[int]
) -> bytes:
    """What stands before the bodies of the containers, of which these are the high halves, how many
    numbers they have, which are lists of runs, and the sizes in bytes."""
    size = len(keys)
    if any(is_runs):
        flags = bytearray((size + 7) // 8)
        for at, chosen in enumerate(is_runs):
            flags[at >> 3] |= chosen << (at & 7)
        found = struct.pack("<I", (size - 1) << 16 | RUNS_COOKIE) + bytes(flags)
    else:
        found = struct.pack("<II", PLAIN_COOKIE, size)
    for key, count in zip(keys, counts):
        found += struct.pack("<HH", key, count - 1)
    if any(is_runs) and size < FEWEST_WITH_OFFSETS:
        return found
    at = len(found) + 4 * size
    for each in sizes:
        found += struct.pack("<I", at)
        at += each
    return found


def are_shorter(runs: int, count: int) -> bool:
    """Whether so many runs take fewer bytes than the numbers themselves."""
    return 2 + 4 * runs < min(2 * count, BYTES_OF_BITS)


def _runs_of(lows: Sequence[int]) -> list[list[int]]:
    """The first number of each run, and how many follow it."""
    found: list[list[int]] = []
    for low in lows:
        if found and sum(found[-1]) + 1 == low:
            found[-1][1] += 1
        else:
            found.append([low, 0])
    return found


def _body(lows: Sequence[int]) -> bytes:
    if len(lows) <= MOST_LISTED:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(BYTES_OF_BITS)
    for low in lows:
        bits[low >> 3] |= 1 << (low & 7)
    return bytes(bits)


def numbers_of_roaring(data: bytes) -> frozenset[int]:
    """The numbers in these bytes. Raises ValueError if they are no bitmap."""
    try:
        found = [
            key << 16 | low
            for key, count, is_runs, at in containers_of(data)
            for low in _lows(data, count, is_runs, at)
        ]
    except struct.error:
        raise ValueError(MALFORMED) from None
    return frozenset(found)


def containers_of(data: bytes) -> Iterator[tuple[int, int, bool, int]]:
    """Of each container: the high half of its numbers, how many there are, whether it is a list of
    runs, and where its body begins. Raises ValueError or struct.error if there is none."""
    (cookie,) = struct.unpack_from("<I", data)
    flags = b""
    if cookie == PLAIN_COOKIE:
        (size,) = struct.unpack_from("<I", data, 4)
        at = 8
    elif cookie & 0xFFFF == RUNS_COOKIE:
        size = (cookie >> 16) + 1
        flags = data[4 : 4 + (size + 7) // 8]
        at = 4 + len(flags)
    else:
        raise ValueError(MALFORMED)
    if size > 1 << 16:
        raise ValueError(MALFORMED)
    heads = struct.unpack_from(f"<{2 * size}H", data, at)
    at += 4 * size
    if not flags or size >= FEWEST_WITH_OFFSETS:
        at += 4 * size
    for number in range(size):
        is_runs = bool(flags) and bool(flags[number >> 3] >> (number & 7) & 1)
        count = heads[2 * number + 1] + 1
        end = at + _size_of_body(data, count, is_runs, at)
        if end > len(data):
            raise ValueError(MALFORMED)
        yield heads[2 * number], count, is_runs, at
        at = end


def _size_of_body(data: bytes, count: int, is_runs: bool, at: int) -> int:
    if is_runs:
        (runs,) = struct.unpack_from("<H", data, at)
        return 2 + 4 * int(runs)
    return 2 * count if count <= MOST_LISTED else BYTES_OF_BITS


def _lows(data: bytes, count: int, is_runs: bool, at: int) -> Iterable[int]:
    if is_runs:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = struct.unpack_from(f"<{2 * runs}H", data, at + 2)
        return [
            low
            for start, length in zip(pairs[::2], pairs[1::2])
            for low in range(start, start + length + 1)
        ]
    if count <= MOST_LISTED:
        return struct.unpack_from(f"<{count}H", data, at)
    bits = data[at : at + BYTES_OF_BITS]
    return [low for low in range(1 << 16) if bits[low >> 3] >> (low & 7) & 1]
