"""Streams of pickles whose classes the reader cannot import."""

from __future__ import annotations

import enum
import gc
import pickle
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import RowBatch
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.network.encoding.frames import Frame
from flinkpy.network.encoding.payloads import ElementDecoder, ElementEncoder


def made_here() -> list[type]:
    @dataclass
    class Point:
        x: int
        y: Any = None

    class Pair(NamedTuple):
        left: Any
        right: Any = None

    class Colour(enum.Enum):
        RED = 1
        BLUE = 2

    return [Point, Pair, Colour]


POINT, PAIR, COLOUR = made_here()
RECORDS = st.recursive(
    st.one_of(
        st.integers(),
        st.text(max_size=2),
        st.fractions(),
        st.sampled_from(list(COLOUR)),  # type: ignore[call-overload]
        st.builds(POINT, st.integers()),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.builds(PAIR, inner, inner),
        st.builds(POINT, st.integers(), inner),
    ),
    max_leaves=4,
)

WRITE = """
import pickle, sys
from dataclasses import dataclass
from flinkpy.core.program.by_value import StreamPickler
@dataclass
class Reading:
    sensor: str
    value: float
stream = StreamPickler()
pickles = [stream.dumps([Reading("roof", float(n))] * 100) for n in range(3)]
sys.stdout.buffer.write(pickle.dumps(pickles))
"""


@given(st.lists(st.lists(RECORDS, max_size=3), min_size=1, max_size=4), st.booleans())
def test_what_is_read_is_what_was_written_and_of_the_same_classes(
    batches: list[list[Any]], only_here: bool
) -> None:
    stream = StreamPickler(only_here=only_here)
    for batch in batches:
        assert pickle.loads(stream.dumps(batch)) == batch


def test_a_class_goes_along_once() -> None:
    stream = StreamPickler()
    sizes = [len(stream.dumps([POINT(1)] * 3)) for _ in range(3)]
    assert sizes[0] > 500
    assert sizes[1] == sizes[2] < 150
    assert len(StreamPickler(only_here=True).dumps([POINT(1)] * 3)) < 150


def test_classes_that_can_be_imported_go_by_name() -> None:
    assert StreamPickler().dumps([Fraction(1, 2), type(None)]) == pickle.dumps(
        [Fraction(1, 2), type(None)], 5
    )


def test_a_class_is_sent_again_where_its_first_pickle_failed() -> None:
    stream = StreamPickler()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        stream.dumps([POINT(1), lambda: None])
    assert pickle.loads(stream.dumps([POINT(1)])) == [POINT(1)]


@pytest.mark.wide
def test_another_process_knows_a_class_from_the_first_pickle_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITE], capture_output=True, check=True, timeout=60
    )
    pickles: list[bytes] = pickle.loads(done.stdout)
    assert len(pickles[1]) < len(pickles[0])
    kinds = set()
    for number, data in enumerate(pickles):
        records = pickle.loads(data)
        assert [(record.sensor, record.value) for record in records] == [
            ("roof", float(number))
        ] * 100
        kinds |= {type(record) for record in records}
        del records
        gc.collect()
    assert len(kinds) == 1
    done = subprocess.run(
        [sys.executable, "-c", f"import pickle; pickle.loads({pickles[1]!r})"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"an instance came of a class that did not come before it" in done.stderr


def test_a_channel_sends_a_class_once_and_what_is_no_class_all_the_same() -> None:
    encoder, decoder = ElementEncoder(), ElementDecoder()
    local = 3
    sizes = []
    for values in (
        [POINT(1)],
        [POINT(2)],
        [POINT(3, bytearray(1 << 15))],
        [PAIR(1, lambda: local)],
        [POINT(4)],
    ):
        (encoded,) = encoder.encode(RowBatch(list(values)))
        payload = memoryview(b"".join(map(bytes, encoded.buffers)))
        sizes.append(len(payload))
        decoded: Any = decoder.decode(
            Frame(encoded.kind, encoded.flags, encoded.parts, 0, 0, 0, 0, payload)
        )
        if values[0] != decoded.values[0]:
            assert decoded.values[0].right() == 3
    assert sizes[1] < 150 < sizes[0]
