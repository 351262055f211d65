"""Parts of texts between separators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def part_at(texts: pa.StringArray, separator: str, index: int) -> pa.StringArray:
    """The part of each text at this place, from 0; null where there is none, as in a text without
    characters.

    Most separators are one byte. Then one look at all bytes finds them, and only the wanted parts
    are copied: a third of the time in which Arrow splits.

    >>> part_at(pa.array(["a/b/c", "a", None, ""]), "/", 1).to_pylist()
    ['b', None, None, None]
    """
    if len(separator.encode()) > 1 or not pa.types.is_string(texts.type):
        return _of_split(texts, separator, index)
    begins_and_end = np.frombuffer(texts.buffers()[1], np.int32)
    begins_and_end = begins_and_end[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    if data is None or not len(texts):
        return pa.nulls(len(texts), texts.type)
    first, last = int(begins_and_end[0]), int(begins_and_end[-1])
    found = np.frombuffer(data, np.uint8, last - first, first) == ord(separator)
    places = (np.flatnonzero(found) + first).astype(np.int32)
    # the separators of text i are those from nth[i] to nth[i + 1]
    nth = np.searchsorted(places, begins_and_end)
    wanted = nth[:-1] + index  # the separator behind the part
    is_there = (wanted <= nth[1:]) & (begins_and_end[1:] > begins_and_end[:-1])
    if texts.null_count:
        is_there &= texts.is_valid().to_numpy(zero_copy_only=False)
    places = np.append(places, np.int32(last))  # for parts at the end of a text
    behind = places[np.minimum(wanted, len(places) - 1)]
    ends = np.where(wanted < nth[1:], behind, begins_and_end[1:])
    starts = begins_and_end[:-1]
    if index:
        starts = np.where(is_there, places[np.minimum(wanted, len(places)) - 1] + 1, ends)
    edges = np.empty(2 * len(texts), np.int32)
    edges[0::2], edges[1::2] = starts, np.where(is_there, ends, starts)
    return _slices(edges, data).take(pa.array(np.arange(0, 2 * len(texts), 2), mask=~is_there))


def _slices(edges: Any, data: pa.Buffer) -> pa.StringArray:
    """The texts between edges that follow each other, without a copy."""
    return pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)


def _of_split(texts: Any, separator: str, index: int) -> Any:
    parts = pc.split_pattern(texts, separator)
    offsets = parts.offsets.to_numpy()
    places = offsets[:-1] + index
    is_there = places < offsets[1:]
    # a text without characters has no parts
    full = pc.greater(pc.binary_length(texts), 0).fill_null(False)
    is_there &= full.to_numpy(zero_copy_only=False)
    return parts.values.take(pa.array(places, mask=~is_there))
