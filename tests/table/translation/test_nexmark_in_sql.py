"""The queries of Nexmark in the benchmark's own text, against plain loops over the same events; the
programs of streams in ``examples/nexmark`` are held to the same loops."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from examples.nexmark.queries_in_sql import SQL, auction_house, query
from flinkpy.common.types import RowKind
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.relational.windows.changes.changing_aggregates import ChangingAggregatesOperator
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import TableEnvironment
from tests.nexmark_in_python import NAIVE, events_of
from tests.table.translation.nexmark_rows import corrected, declare_corrected, rows_of

FEW = NexmarkGenerator(events=1_500, rate=100)  # fifteen seconds
MANY = NexmarkGenerator(events=20_000, rate=1_000)
EXTRA = "x" * 16
GAP_MS = 10_000  # of the sessions of q11


def milliseconds(moment: Any) -> int:
    from datetime import datetime, timedelta

    return int((moment - datetime(1970, 1, 1)) / timedelta(milliseconds=1))


# what of a row the plain loop gives
SHOWN: dict[str, Callable[..., Any]] = {
    "q0": lambda auction, bidder, price, time, extra: (auction, bidder, price, milliseconds(time)),
    "q1": lambda auction, bidder, price, time, extra: (auction, bidder, float(price)),
    "q2": lambda *row: row,
    "q3": lambda *row: row,
    "q4": lambda *row: row,
    "q5": lambda *row: row,
    "q7": lambda auction, price, bidder, time, extra: (auction, bidder, price, milliseconds(time)),
    "q8": lambda person, name, start: (person, name),
    "q9": lambda *row: (row[0], row[7], row[8], row[11], row[12], milliseconds(row[13])),
    "q11": lambda bidder, count, start, end: (
        bidder,
        count,
        milliseconds(start),
        milliseconds(end),
    ),
    "q13": lambda auction, bidder, price, time, value: (
        auction,
        bidder,
        price,
        milliseconds(time),
        value,
    ),
    "q14": lambda auction, bidder, price, part, time, extra, count: (
        (auction, bidder, float(price), part, count)
    ),
    "q15": lambda *row: row,
    "q16": lambda *row: row,
    "q17": lambda *row: row,
    "q18": lambda *row: (*row[:4], milliseconds(row[5])),
    "q19": lambda *row: (row[0], row[2], row[7]),  # bids of one price are in any order
    "q20": lambda *row: (*row[:3], row[7], row[13]),
    "q21": lambda *row: row,
    "q22": lambda auction, bidder, price, channel, *folders: (auction, bidder, price, *folders),
}


def expected(name: str, generator: NexmarkGenerator) -> list[Any]:
    rows = NAIVE[name](events(generator))
    if name == "q0":
        rows = (
            (bid["auction"], bid["bidder"], bid["price"], bid["date_time"])
            for bid in events(generator)("bid")
        )
    return sorted(rounded(row[1:] if name == "q5" else row) for row in rows)


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(each, 3) if isinstance(each, float) else each for each in row)


events = functools.cache(events_of)


@functools.cache
def house(
    generator: NexmarkGenerator, *, is_batch: bool = False, parallelism: int = 1
) -> TableEnvironment:
    assert generator.events is not None
    return auction_house(
        generator.events, rate=generator.rate, is_batch=is_batch, parallelism=parallelism
    )


@functools.cache
def corrected_house(
    generator: NexmarkGenerator, *, parallelism: int = 1, rows_per_batch: int = 100
) -> TableEnvironment:
    """The same events at the end, of tables whose rows change."""
    tables = auction_house(1, parallelism=parallelism)
    for kind in ("person", "auction", "bid"):
        tables.execute_sql(f"DROP VIEW {kind}")
    declare_corrected(tables, generator, rows_per_batch)
    return tables


def answered(name: str, tables: TableEnvironment) -> list[Any]:
    """What is left of the rows of a query."""
    left: Counter[tuple[Any, ...]] = Counter()
    with tables.execute_sql(query(name)).collect() as rows:
        for row in rows:
            adds = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            left[rounded(SHOWN[name](*row))] += 1 if adds else -1
    assert min(left.values(), default=0) >= 0, "what is taken back was there"
    return sorted(left.elements())


@pytest.mark.parametrize("name", ["q3", "q5", "q7", "q14"])
def test_a_query_adds_the_rows_of_a_plain_loop(name: str) -> None:
    found = answered(name, house(FEW))
    assert found
    assert found == expected(name, FEW)


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("is_batch", [False, True], ids=["STREAMING", "BATCH"])
@pytest.mark.parametrize("name", list(SHOWN))
def test_a_query_gives_the_same_in_both_modes_at_any_parallelism(
    name: str, is_batch: bool, parallelism: int
) -> None:
    found = answered(name, house(MANY, is_batch=is_batch, parallelism=parallelism))
    assert found
    assert found == expected(name, MANY)


@pytest.mark.wide(but=("[q9-3]",))
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("name", list(SHOWN))
def test_what_is_left_of_changes_is_the_result_of_the_rows_that_are_left(
    name: str, parallelism: int
) -> None:
    """Persons, auctions and bids come wrong first, and are corrected."""
    wanted = sessions_of_corrected_bids() if name == "q11" else expected(name, FEW)
    assert answered(name, corrected_house(FEW, parallelism=parallelism)) == wanted


def sessions_of_corrected_bids() -> list[Any]:
    """A bid that was a mistake is not counted, and bounds its session still, as in Flink."""
    moments: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for bid in corrected(rows_of(FEW, "bid"), Random("bid")):
        adds = bid.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        moments[bid[1]].append((milliseconds(bid[5]), 1 if adds else -1))
    found = []
    for bidder, changes in moments.items():
        begin, last, count = 0, -GAP_MS - 1, 0
        for moment, change in sorted(changes):
            if moment - last > GAP_MS:
                found.append((bidder, count, begin, last + GAP_MS))
                begin, count = moment, 0
            last, count = moment, count + change
        found.append((bidder, count, begin, last + GAP_MS))
    return sorted(each for each in found if each[1])


@pytest.mark.wide
def test_rows_that_are_taken_back_go_before_their_window_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ChangingAggregatesOperator, "most", 3)
    assert answered("q5", corrected_house(FEW)) == expected("q5", FEW)


@pytest.mark.wide
def test_bids_are_counted_by_the_machines_time() -> None:
    """q12: each window closes with the clock, and all at the end."""
    found: Counter[int] = Counter()
    with house(FEW, parallelism=3).execute_sql(query("q12")).collect() as rows:
        for bidder, count, start, end in rows:
            assert (end - start).total_seconds() == 10
            found[bidder] += count
    assert found == Counter(bid["bidder"] for bid in events(FEW)("bid"))


def test_q6_is_refused_as_in_flink() -> None:
    reason = "Rowtime attributes must not be in the input rows of a regular join"
    with pytest.raises(ValidationError, match=reason):
        house(FEW).explain_sql(query("q6"))


def test_bids_are_written_by_day_and_minute(tmp_path: Path) -> None:
    """q10, as the benchmark writes its table."""
    tables = auction_house(1_500, rate=10)
    tables.execute_sql(f"""
        CREATE TABLE nexmark_q10 (
          auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING,
          dt STRING, hm STRING
        ) PARTITIONED BY (dt, hm) WITH (
          'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv',
          'sink.partition-commit.trigger' = 'partition-time',
          'sink.partition-commit.delay' = '1 min',
          'sink.partition-commit.policy.kind' = 'success-file',
          'partition.time-extractor.timestamp-pattern' = '$dt $hm:00',
          'sink.rolling-policy.rollover-interval' = '1min',
          'sink.rolling-policy.check-interval' = '1min'
        )
    """)
    tables.execute_sql((SQL / "q10.sql").read_text()).wait()
    folders = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.glob("*/*"))
    assert folders == [f"dt=2015-07-15/hm=00%3A0{minute}" for minute in range(3)]
    written = tables.execute_sql("SELECT auction, price, `dateTime`, hm FROM nexmark_q10")
    expected_rows = [
        (bid["auction"], bid["price"], bid["date_time"], f"00:0{bid['date_time'] // 60_000 % 60}")
        for bid in events_of(NexmarkGenerator(events=1_500, rate=10))("bid")
    ]
    with written.collect() as rows:
        found = [(row[0], row[1], milliseconds(row[2]), row[3]) for row in rows]
    assert sorted(found) == sorted(expected_rows)


NEAR = (
    "b.`dateTime` BETWEEN a.`dateTime` - INTERVAL '1' SECOND AND a.`dateTime` + INTERVAL '3' SECOND"
)
OVER = "FROM bid WINDOW w AS (PARTITION BY auction ORDER BY `dateTime`"
STATEMENTS = (
    f"SELECT a.id, b.price FROM auction a LEFT JOIN bid b ON a.id = b.auction AND {NEAR}",
    f"SELECT a.id, b.price FROM auction a FULL JOIN bid b ON a.id = b.auction AND {NEAR} "
    "AND b.price > 1000",
    "SELECT auction, price FROM bid WHERE auction IN (SELECT id FROM auction WHERE category = 10)",
    "SELECT p.id, a.id FROM person p JOIN auction a ON p.id < a.seller AND a.category = 10",
    "SELECT auction, SUM(price) OVER w, COUNT(*) OVER w, AVG(price) OVER w, MIN(bidder) OVER w, "
    f"RANK() OVER (PARTITION BY bidder ORDER BY `dateTime`) {OVER})",
    f"SELECT auction, LAG(price, 2) OVER w, ROW_NUMBER() OVER w {OVER})",
    f"SELECT auction, SUM(price) OVER w {OVER} ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "SELECT auction, SUM(price) OVER w, COUNT(DISTINCT bidder) OVER w "
    f"{OVER} RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW)",
    "SELECT auction, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction "
    "ORDER BY `dateTime`) AS n FROM bid) WHERE n = 1",
    "SELECT `dateTime`, price FROM bid ORDER BY `dateTime`, price",
)


@pytest.mark.wide
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_stream_of_rows_in_time_ends_where_a_batch_does(statement: str) -> None:
    found = []
    for is_batch, parallelism in ((True, 1), (False, 1), (False, 3)):
        tables = house(FEW, is_batch=is_batch, parallelism=parallelism)
        with tables.execute_sql(statement).collect() as rows:
            found.append([tuple(row) for row in rows])
    if "ORDER BY `dateTime`, price" not in statement:
        found = [sorted(each, key=repr) for each in found]
    assert found[0]
    assert found[1] == found[0]
    assert found[2] == found[0]
