"""Queries of Nexmark in SQL over tables that change: bids are corrected and withdrawn, auctions get
other categories. What stands at the end does not depend on the order in which changes of different
keys come. And rows that meet the version which a table had at their time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from flinkpy.common import Row, RowKind, Types
from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.table import Schema, StreamTableEnvironment, Table
from flinkpy.testing.simulation.programs.program_inputs import (
    STEP_MS,
    Fragile,
    read,
    write,
    write_changes,
)
from flinkpy.testing.simulation.programs.sql_programs import declare

INSERT, BEFORE, AFTER, DELETE = RowKind
AUCTIONS = 6
BIDDERS = 3
_BID = Types.ROW_NAMED(["id", "auction", "bidder", "price", "at"], [Types.LONG()] * 5)
_AUCTION = Types.ROW_NAMED(
    ["id", "category", "opens", "expires"],
    [Types.LONG(), Types.STRING(), Types.LONG(), Types.LONG()],
)


def _bids(number: int, steps: int) -> Iterator[tuple[RowKind, tuple[Any, ...]]]:
    """Bids of one list: new ones, corrected ones, which may go to another auction, and some that
    are withdrawn."""
    random = Random(number)
    live: list[tuple[Any, ...]] = []

    def bid(id: int, at: int) -> tuple[Any, ...]:
        return id, random.randrange(AUCTIONS), random.randrange(BIDDERS), random.randrange(50), at

    for step in range(steps):
        how = random.random()
        if how < 0.5 or not live:
            live.append(bid(1000 * number + step, 1000 * step + number))
            yield INSERT, live[-1]
        else:
            before = live.pop(random.randrange(len(live)))
            if how < 0.85:
                live.append(bid(before[0], before[-1]))
                yield BEFORE, before
                yield AFTER, live[-1]
            else:
                yield DELETE, before


def _auctions(steps: int) -> Iterator[tuple[RowKind, tuple[Any, ...]]]:
    """Each replaces the auction before it with its id; some end."""
    random = Random(99)
    for step in range(steps):
        id = step if step < AUCTIONS else random.randrange(AUCTIONS)
        opens = 1000 * random.randrange(5)
        auction = id, random.choice("abc"), opens, opens + 1000 * random.randrange(10, 60)
        yield (DELETE if step >= AUCTIONS and random.random() < 0.2 else AFTER), auction


class AsChange:
    """A row with its kind."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._maybe = Fragile("a change")

    def __call__(self, record: tuple[RowKind, tuple[Any, ...]]) -> Row:
        kind, values = self._maybe(record)
        return Row.of_kind(kind, **dict(zip(self._names, values)))


def _changes(
    env: StreamExecutionEnvironment, name: str, lists: Sequence[Sequence[Any]], type: Any
) -> DataStream:
    """Lists of kinds and values as a changelog."""
    timed = [[(record, 10 * at) for at, record in enumerate(each)] for each in lists]
    rows = read(env, name, timed).map(AsChange(type.get_field_names()), output_type=type)
    return rows.uid(f"{name} changes")


def _tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    """``bid`` with all kinds of changes, and ``auction``, whose rows replace others."""
    tables = StreamTableEnvironment.create(env)
    key = Schema.new_builder().primary_key("id").build()
    bids = _changes(env, "bids", [list(_bids(number, 14)) for number in range(2)], _BID)
    auctions = _changes(env, "auctions", [list(_auctions(14))], _AUCTION)
    tables.create_temporary_view("bid", tables.from_changelog_stream(bids, key))
    tables.create_temporary_view(
        "auction", tables.from_changelog_stream(auctions, key, ChangelogMode.upsert())
    )
    return tables


def _upserted(key: str, columns: str, query: str) -> Callable[[StreamExecutionEnvironment], None]:
    """A program that writes a query into a table with these columns and this key."""

    def build(env: StreamExecutionEnvironment) -> None:
        tables, target = _tables(env), Schema.new_builder()
        for name, type in (each.split() for each in columns.split(", ")):
            target = target.column(name, type)
        keys = key.split(", ")
        rows: Table = tables.sql_query(query)
        schema = target.primary_key(*keys).build()
        write_changes(tables.to_changelog_stream(rows, schema, ChangelogMode.upsert()), keys)

    return build


# the key is made of a column, so nothing knows it for one of the query: the sink keeps all rows
q4 = _upserted(
    "category",
    "category STRING, final BIGINT",
    "SELECT 'in ' || category, AVG(final) FROM ("
    "SELECT MAX(b.price) AS final, a.category FROM auction AS a, bid AS b "
    "WHERE a.id = b.auction AND b.`at` BETWEEN a.opens AND a.expires GROUP BY a.id, a.category) "
    "GROUP BY category",
)
q9 = _upserted(
    "auction",
    "auction BIGINT, category STRING, bid BIGINT, price BIGINT, bidder BIGINT",
    "SELECT aid, category, id, price, bidder FROM (SELECT a.id AS aid, a.category, b.*, "
    "ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`at`) AS rn "
    "FROM auction AS a, bid AS b WHERE a.id = b.auction AND b.`at` BETWEEN a.opens AND a.expires) "
    "WHERE rn <= 1",
)
# a bid that goes to another auction leaves the one after it has come to the other, or before
q20 = _upserted(
    "id",
    "id BIGINT, auction BIGINT, price BIGINT, category STRING, expires BIGINT",
    "SELECT b.id, b.auction, b.price, a.category, a.expires FROM bid AS b "
    "JOIN auction AS a ON b.auction = a.id WHERE a.category <> 'b'",
)


def q18(env: StreamExecutionEnvironment) -> None:
    """Into a table without a key: each row that does not stand any more is taken back."""
    tables = _tables(env)
    rows = tables.sql_query(
        "SELECT auction, bidder, price, `at` FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY bidder, auction ORDER BY `at` DESC) AS rn FROM bid) WHERE rn <= 1"
    )
    write_changes(tables.to_changelog_stream(rows))


# -- versions: those that come or go have the time at which they do so -----------------------------

_RATE = Types.ROW_NAMED(["k", "rate", "ms"], [Types.STRING(), Types.LONG(), Types.LONG()])


def _rates(steps: int) -> Iterator[tuple[RowKind, tuple[Any, ...]]]:
    """Each key is quoted, gets other rates, and is not quoted any more for a while."""
    random = Random(7)
    there: dict[str, tuple[Any, ...]] = {}
    for step in range(steps):
        key, ms = f"key-{random.randrange(5)}", 2 * STEP_MS * step
        before = there.pop(key, None)
        if before is not None and random.random() < 0.25:
            yield DELETE, (*before[:2], ms)
            continue
        there[key] = key, random.randrange(100), ms
        if before is not None and random.random() < 0.5:
            yield BEFORE, before
        yield (INSERT if before is None else AFTER), there[key]


def sql_versions(env: StreamExecutionEnvironment) -> None:
    """Records meet the rate of their time, and the last row that another table had of their key."""
    tables = StreamTableEnvironment.create(env)
    declare(tables, env, "sent", 0)
    declare(tables, env, "received", 50_000)
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "CAST(TO_TIMESTAMP_LTZ(ms, 3) AS TIMESTAMP(3))")
        .watermark("ts", "ts")
        .primary_key("k")
        .build()
    )
    quoted = _changes(env, "rates", [list(_rates(40))], _RATE)
    tables.create_temporary_view("rates", tables.from_changelog_stream(quoted, schema))
    tables.execute_sql(
        "CREATE TEMPORARY VIEW latest AS SELECT k, n, ts FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY k ORDER BY ts DESC) AS rn FROM received) WHERE rn = 1 AND MOD(n, 3) <> 0"
    )
    join = "FOR SYSTEM_TIME AS OF s.ts AS r ON s.k = r.k"
    rows = tables.sql_query(
        f"SELECT 'rate' AS what, s.k, s.n, r.rate AS met FROM sent AS s LEFT JOIN rates {join} "
        f"UNION ALL SELECT 'latest', s.k, s.n, r.n FROM sent AS s JOIN latest {join} AND r.n > s.n"
    )
    write(tables.to_data_stream(rows))
