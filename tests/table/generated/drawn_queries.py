"""Queries drawn with the rows of their tables. Each is valid, and its result does not depend on the
order in which rows come.

A part that DuckDB writes otherwise stands in the text in both forms; ``flink`` and ``duckdb`` take
one of them. What DuckDB cannot judge, because it means something else there, marks the query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

INT, BIGINT, DOUBLE, STRING, BOOLEAN = "INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN"
DECIMAL, WIDE, DATE, TIMESTAMP = "DECIMAL(20, 4)", "DECIMAL(38, 10)", "DATE", "TIMESTAMP(3)"
EXTREME, ARRAY = "EXTREME", "ARRAY<INT>"  # EXTREME: a DOUBLE whose sum depends on the order

# ``e`` has a watermark, so its times are never null
TABLES = {
    "t": {"a": INT, "b": BIGINT, "s": STRING, "d": DOUBLE, "n": DECIMAL, "f": BOOLEAN},
    "u": {"a": INT, "s": STRING, "k": DATE, "m": TIMESTAMP, "x": EXTREME, "w": WIDE, "l": ARRAY},
    "e": {"ts": TIMESTAMP, "a": INT, "s": STRING, "d": DOUBLE, "n": DECIMAL},
}
_EPOCH = datetime(1970, 1, 1)

Row = tuple[Any, ...]
Column = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """A query and the rows of its tables. ``ordered``: the order of the result says something too.
    ``judged``: DuckDB means the same by it. ``streams``: STREAMING gives the same as BATCH; a total
    of no rows it does not give, as Flink's."""

    text: str
    rows: dict[str, list[Row]]
    ordered: bool = False
    judged: bool = True
    streams: bool = True

    @property
    def flink(self) -> str:
        return _FORMS.sub(r"\1", self.text)

    @property
    def duckdb(self) -> str:
        return _FORMS.sub(r"\2", self.text)


_FORMS = re.compile("⟦([^⟦¦⟧]*)¦([^⟦¦⟧]*)⟧")


def either(flink: str, duckdb: str) -> str:
    """What stands in the one text, and in the other."""
    return f"⟦{flink}¦{duckdb}⟧"


# -- values ----------------------------------------------------------------------------------------

_VALUES: dict[str, list[Any]] = {
    INT: [1, None, 0, 2, -1, 3, -3],
    BIGINT: [0, None, 1, 2, -5, 2**63 - 1, -(2**63), 10**12],
    STRING: ["", None, "a", "b", "ab", "A ", " a", "é", "𝄞x", "it's", "%", "1"],
    DOUBLE: [0.5, None, 0.0, 1.0, -2.25, 3.0, 1024.125],
    EXTREME: [1.5, None, 0.0, 1e308, -1e308, 5e-324, 0.1],
    BOOLEAN: [True, None, False],
    DECIMAL: [Decimal("1.0000"), None, Decimal("0.0000"), Decimal("-2.5000"), Decimal("999.9999")],
    WIDE: [
        Decimal("1E-10"),
        None,
        Decimal("9" * 28 + "." + "9" * 10),
        Decimal("-" + "9" * 28 + "." + "9" * 10),
        Decimal("0E-10"),
    ],
    DATE: [date(1970, 1, 1), None, date(2024, 2, 29), date(1969, 12, 31), date(1999, 12, 31)],
    TIMESTAMP: [
        _EPOCH,
        None,
        datetime(2024, 2, 29, 23, 59, 59, 999000),
        datetime(1969, 12, 31, 23, 59, 59, 1000),
        datetime(2024, 2, 29, 12),
    ],
    ARRAY: [[1, 2], None, [], [None], [3, 3, None]],
}
_ODD = {DOUBLE: [float("nan"), -0.0, float("inf")], EXTREME: [float("nan"), -0.0, float("-inf")]}


def _rows(random: Random, table: str, odd: bool) -> list[Row]:
    """Up to twelve rows, of few values in each column, so that equal ones meet."""
    columns = []
    size = random.choice([1, 3, 5, 8, 8, 12]) if random.random() < 0.95 else 0
    for name, type in TABLES[table].items():
        if name == "ts":
            pool: list[Any] = [_EPOCH + timedelta(seconds=random.randint(0, 40)) for _ in range(9)]
        else:
            pool = _VALUES[type] + (_ODD.get(type, []) if odd else [])
            pool = random.sample(pool, random.randint(1, len(pool)))
        columns.append([random.choice(pool) for _ in range(size)])
    rows = list(zip(*columns))
    return sorted(rows, key=lambda row: row[0]) if table == "e" else rows  # none is ever late


def drawn_case(seed: int) -> Case:
    """A query over tables of a few rows."""
    random = Random(seed)
    odd = random.random() < 0.25
    rows = {name: _rows(random, name, odd) for name in TABLES}
    maker = _QueryMaker(random)
    text, ordered = maker.query()
    return Case(text, rows, ordered, maker.judged and not odd, maker.streams)


# -- queries ---------------------------------------------------------------------------------------

_ANY = (INT, BIGINT, DOUBLE, STRING, BOOLEAN, DECIMAL, WIDE, DATE, TIMESTAMP, EXTREME)
_NUMBERS = (INT, BIGINT, DOUBLE, DECIMAL)


def _sql(type: str) -> str:
    return "DOUBLE" if type == EXTREME else type


def _order(names: Sequence[str], chosen: Sequence[bool]) -> str:
    """Nulls are the least, as Flink has them."""
    return ", ".join(
        f"{name} DESC NULLS LAST" if descending else f"{name} ASC NULLS FIRST"
        for name, descending in zip(names, chosen)
    )


class _QueryMaker:
    """Draws one query. ``judged`` becomes False with the first thing that DuckDB means otherwise."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0
        self._views: list[tuple[str, list[Column]]] = []  # of WITH
        self.judged = True
        self.streams = True

    # -- choices -----------------------------------------------------------------------------------

    def _one(self, choices: Sequence[Any]) -> Any:
        return self._random.choice(choices)

    def _chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent

    def _some(self, choices: Sequence[Any], most: int = 2) -> list[Any]:
        picked = [self._one(choices) for _ in range(self._random.randint(1, most))]
        return list(dict.fromkeys(picked))

    def _name(self, letter: str = "r") -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # -- whole queries -----------------------------------------------------------------------------

    def query(self) -> tuple[str, bool]:
        """A query, and whether it orders all of its columns."""
        begin = ""
        if self._chance(15):
            text, columns = self._select(1, self._types())
            name = self._name("w")
            begin, self._views = f"WITH {name} AS ({text}) ", [(name, columns)]
        text, columns = self._body(2)
        if not self._chance(20):
            return begin + text, False
        names = [name for name, _ in columns]
        order = _order(names, [self._chance(30) for _ in names])
        limit = self._one(["", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 2 ROWS"])
        if "OFFSET 2" in limit:
            limit = either(limit, " OFFSET 2")
        return f"{begin}SELECT * FROM ({text}) AS {self._name()} ORDER BY {order}{limit}", True

    def _types(self) -> list[str]:
        return [self._one(_ANY) for _ in range(self._random.randint(1, 3))]

    def _body(self, depth: int, types: list[str] | None = None) -> tuple[str, list[Column]]:
        types = self._types() if types is None else types
        if depth and self._chance(20):
            kind = self._one(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            kind = self._one([kind, kind + " ALL"]) if kind in ("INTERSECT", "EXCEPT") else kind
            left, columns = self._body(depth - 1, types)
            right, _ = self._body(depth - 1, types)
            return f"({left}) {kind} ({right})", columns
        return self._select(depth, types)

    def _select(self, depth: int, types: list[str]) -> tuple[str, list[Column]]:
        forms = [self._plain, self._plain, self._grouped, self._grouped]
        forms += [self._over, self._windowed, self._windowed]
        text: str = self._one(forms)(depth, types)
        return text, [(f"c{place}", type) for place, type in enumerate(types)]

    def _plain(self, depth: int, types: list[str]) -> str:
        source, columns = self._source(depth)
        where = self._where(depth, columns)
        items = ", ".join(f"{self._value(t, columns, depth)} AS c{i}" for i, t in enumerate(types))
        distinct = "DISTINCT " if self._chance(15) else ""
        return f"SELECT {distinct}{items} FROM {source}{where}"

    # -- groups ------------------------------------------------------------------------------------

    def _grouped(self, depth: int, types: list[str]) -> str:
        source, columns = self._source(depth)
        where = self._where(depth, columns)
        simple = [each for each in columns if each[1] != ARRAY]
        keys = self._some(simple, 2)
        names = [name for name, _ in keys]
        sets = ", ".join(names)
        if self._chance(25):
            lists = f"GROUPING SETS (({names[0]}), ({sets}), ())"
            sets = self._one([f"ROLLUP ({sets})", f"CUBE ({sets})", lists])
        elif self._chance(15):
            keys, sets = [], ""  # of all rows
        items = [
            f"{self._of_group(type, keys, columns)} AS c{place}" for place, type in enumerate(types)
        ]
        having = ""
        if sets and "(" in sets:
            having = " HAVING COUNT(*) > 0"  # of no rows, Flink gives no total
        elif self._chance(25):
            having = f" HAVING {self._aggregate(BIGINT, columns)} >= {self._one([1, 0, 2])}"
        if not sets and self._chance(70):
            having = f"{having} AND COUNT(*) > 0" if having else " HAVING COUNT(*) > 0"
        elif not sets:
            self.streams = False
        group = f" GROUP BY {sets}" if sets else ""
        if not sets and not any(map(_has_call, items)):
            items.append("COUNT(*) AS more")
            return self._without_more(
                f"SELECT {', '.join(items)} FROM {source}{where}{having}", types
            )
        return f"SELECT {', '.join(items)} FROM {source}{where}{group}{having}"

    def _without_more(self, text: str, types: list[str]) -> str:
        names = ", ".join(f"c{place}" for place in range(len(types)))
        return f"SELECT {names} FROM ({text}) AS {self._name()}"

    def _of_group(self, type: str, keys: list[Column], columns: list[Column]) -> str:
        fitting = [name for name, of in keys if of == type]
        if fitting and self._chance(60):
            return str(self._one(fitting))
        return self._aggregate(type, columns)

    def _aggregate(self, type: str, columns: list[Column]) -> str:
        fitting = [name for name, of in columns if of == type]
        chosen = f" FILTER (WHERE {self._comparison(columns)})" if self._chance(20) else ""
        simple = [name for name, of in columns if of != ARRAY]
        if type == BIGINT and (not fitting or self._chance(60)):
            distinct = self._one(["", "DISTINCT "])
            of = self._one(["*", f"{distinct}{self._one(simple)}"])
            return f"COUNT({of}){chosen}"
        if not fitting:
            return f"{self._one(['MIN', 'MAX'])}({self._literal(type)}){chosen}"
        name = self._one(fitting)
        if type in _NUMBERS and self._chance(50):
            distinct = self._one(["", "", "DISTINCT "])
            call = self._one(["SUM", "AVG"])
            if type == BIGINT:
                self.judged = False  # Flink's sum wraps around
            if call == "SUM" or type == DOUBLE:
                return f"CAST({call}({distinct}{name}){chosen} AS {type})"
            self.judged = False  # AVG of INT is an INT
            return f"CAST(AVG({distinct}{name}){chosen} AS {type})"
        if type == BOOLEAN:
            return f"({self._one(['COUNT(*)', f'COUNT({name})'])}{chosen} > 1)"
        return f"{self._one(['MIN', 'MAX'])}({name}){chosen}"

    # -- OVER --------------------------------------------------------------------------------------

    def _over(self, depth: int, types: list[str]) -> str:
        name, alias = self._one(list(TABLES)), self._name()
        columns = [(f"{alias}.{column}", type) for column, type in TABLES[name].items()]
        simple = [each for each in columns if each[1] != ARRAY]
        names = [column for column, _ in simple]
        partition = f"PARTITION BY {self._one(names)} " if self._chance(60) else ""
        if name == "e" and self._chance(50):
            order = f"{alias}.ts"
            peers = ["RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"]
            peers += ["RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW"]
            order += " " + self._one(peers)
            is_total = False
        else:
            order = _order(names, [self._chance(30) for _ in names])
            frames = ["", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"]
            frames += [" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"]
            frames += [" ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"]
            order += self._one(frames)
            is_total = True
        window = f"OVER ({partition}ORDER BY {order})"
        items = [
            f"{self._over_call(type, columns, window, is_total)} AS c{place}"
            for place, type in enumerate(types)
        ]
        where = self._where(0, columns)
        return f"SELECT {', '.join(items)} FROM {name} AS {alias}{where}"

    def _over_call(self, type: str, columns: list[Column], window: str, is_total: bool) -> str:
        fitting = [name for name, of in columns if of == type]
        if type == BIGINT and is_total and " ROWS" not in window and self._chance(40):
            call = self._one(["ROW_NUMBER()", "RANK()", "DENSE_RANK()"])
            return f"{call} {window}"
        if type == BIGINT:
            return f"COUNT({self._one(['*', columns[0][0]])}) {window}"
        if not fitting or self._chance(20):
            return self._value(type, columns, 0)
        name = self._one(fitting)
        if is_total and " ROWS" not in window and self._chance(30):
            return f"{self._one(['LAG', 'LEAD'])}({name}, 1) {window}"
        if is_total and " ROWS" in window and self._chance(30):
            call = self._one(["FIRST_VALUE", "LAST_VALUE"])
            return f"{call}({name}{either('', ' IGNORE NULLS')}) {window}"
        if type in (INT, DOUBLE, DECIMAL) and self._chance(50):
            return f"CAST(SUM({name}) {window} AS {type})"
        if type == BOOLEAN:
            return f"(COUNT({name}) {window} > 1)"
        return f"{self._one(['MIN', 'MAX'])}({name}) {window}"

    # -- windows of time ---------------------------------------------------------------------------

    def _window_table(self, alias: str) -> tuple[str, list[Column]]:
        size = self._one([10, 7])
        kind = self._one(["TUMBLE", "HOP", "CUMULATE"])
        step = {"TUMBLE": size, "HOP": self._one([5, 4, 12]), "CUMULATE": 5}[kind]
        size = 10 if kind == "CUMULATE" else size
        intervals = [
            f"INTERVAL '{each}' SECOND"
            for each in ([step, size] if step != size or kind != "TUMBLE" else [size])
        ]
        flink = f"TABLE({kind}(TABLE e, DESCRIPTOR(ts), {', '.join(intervals)}))"
        # The windows of a second: those that begin at a multiple of the step and hold it
        starts = f"range(CAST(floor((epoch(ts) - {size}) / {step}) AS BIGINT) * {step}, CAST(epoch(ts) AS BIGINT) + 1, {step})"
        if kind == "CUMULATE":
            begin = f"CAST(floor(epoch(ts) / {size}) AS BIGINT) * {size}"
            starts = f"range({begin} + {step}, {begin} + {size} + 1, {step})"
            first, last, holds = begin, "g", "g > epoch(ts)"
        else:
            first, last = "g", f"g + {size}"
            holds = f"g <= epoch(ts) AND g + {size} > epoch(ts)"
        duckdb = (
            f"(SELECT ts, a, s, d, n, make_timestamp(({first}) * 1000000) AS window_start, "
            f"make_timestamp(({last}) * 1000000) AS window_end "
            f"FROM (SELECT *, unnest({starts}) AS g FROM e) WHERE {holds})"
        )
        columns = [(f"{alias}.{name}", type) for name, type in TABLES["e"].items()]
        bounds = [(f"{alias}.{name}", TIMESTAMP) for name in ("window_start", "window_end")]
        return f"{either(flink, duckdb)} AS {alias}", columns + bounds

    def _windowed(self, depth: int, types: list[str]) -> str:
        alias = self._name()
        source, columns = self._window_table(alias)
        where = self._where(0, columns)
        keys = [(f"{alias}.{name}", TIMESTAMP) for name in ("window_start", "window_end")]
        if self._chance(60):
            keys += self._some(list(columns[1:-2]), 2)
        items = [
            f"{self._of_group(type, keys, columns)} AS c{place}" for place, type in enumerate(types)
        ]
        having = f" HAVING COUNT(*) >= {self._one([1, 2])}" if self._chance(25) else ""
        group = ", ".join(name for name, _ in keys)
        return f"SELECT {', '.join(items)} FROM {source}{where} GROUP BY {group}{having}"

    # -- FROM --------------------------------------------------------------------------------------

    def _source(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self._relation(depth)
        for _ in range(self._one([0, 0, 1, 1, 2])):
            other, more = self._relation(depth)
            kind = self._one(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            pairs = [
                f"{one} = {two}"
                for one, type in columns
                for two, other_type in more
                if type == other_type and type not in (ARRAY, EXTREME)
            ]
            if not pairs:
                text, columns = f"{text} CROSS JOIN {other}", columns + more
                continue
            condition = " AND ".join(self._some(pairs))
            if self._chance(20):
                condition += f" AND {self._comparison(columns + more)}"
            text += f" {kind} {other} ON {condition}"
            columns = columns + more
        lists = [name for name, type in columns if type == ARRAY]
        if lists and self._chance(40):
            alias = self._name()
            text += f" CROSS JOIN UNNEST({lists[0]}) AS {alias}(y)"
            columns = [*columns, (f"{alias}.y", INT)]
        return text, columns

    def _relation(self, depth: int) -> tuple[str, list[Column]]:
        alias = self._name()
        if self._views and self._chance(50):
            name, of = self._views[0]
            return f"{name} AS {alias}", [(f"{alias}.{column}", type) for column, type in of]
        if depth and self._chance(20):
            text, of = self._body(depth - 1)
            return f"({text}) AS {alias}", [(f"{alias}.{column}", type) for column, type in of]
        if self._chance(10):
            types = self._types()
            rows = [
                ", ".join(f"CAST({self._literal(type)} AS {_sql(type)})" for type in types)
                for _ in range(self._one([1, 2, 3]))
            ]
            names = [f"v{place}" for place in range(len(types))]
            text = (
                f"(VALUES {', '.join(f'({row})' for row in rows)}) AS {alias}({', '.join(names)})"
            )
            return text, [(f"{alias}.{name}", type) for name, type in zip(names, types)]
        name = self._one(list(TABLES))
        columns = [(f"{alias}.{column}", type) for column, type in TABLES[name].items()]
        return f"{name} AS {alias}", columns

    def _where(self, depth: int, columns: list[Column]) -> str:
        if not self._chance(35):
            return ""
        parts = [self._condition(depth, columns) for _ in range(self._one([1, 2]))]
        return " WHERE " + " AND ".join(parts)

    # -- conditions --------------------------------------------------------------------------------

    def _condition(self, depth: int, columns: list[Column]) -> str:
        if depth and self._chance(35):
            return self._subquery(columns)
        if self._chance(20):
            return f"({self._comparison(columns)} OR {self._comparison(columns)})"
        if self._chance(15):
            return f"NOT ({self._comparison(columns)})"
        return self._comparison(columns)

    def _comparison(self, columns: list[Column]) -> str:
        simple = [each for each in columns if each[1] != ARRAY]
        if not simple:
            return "TRUE"
        name, type = self._one(simple)
        fitting = [other for other, of in simple if of == type]
        other = self._one([self._literal(type), self._one(fitting)])
        forms = [f"{name} {self._one(['=', '<>', '<', '>=', '<>', '>='])} {other}"]
        forms += [f"{name} IS NULL", f"{name} IS NOT NULL"]
        forms += [f"{name} IS NOT DISTINCT FROM {other}"]
        forms += [f"{name} IN ({self._literal(type)}, {self._literal(type)})"]
        if type == STRING:
            forms += [f"{name} LIKE '%a%'", f"{name} LIKE '_'"]
        if type in _NUMBERS:
            forms += [f"{name} BETWEEN {self._literal(type)} AND {self._literal(type)}"]
        if type == BOOLEAN:
            forms += [name, f"{name} IS TRUE", f"{name} IS NOT FALSE"]
        return str(self._one(forms))

    def _subquery(self, columns: list[Column]) -> str:
        table, alias = self._one(list(TABLES)), self._name("q")
        own = [(f"{alias}.{name}", type) for name, type in TABLES[table].items()]
        pairs = [
            (one, two)
            for one, type in columns
            for two, other in own
            if type == other and type not in (ARRAY, EXTREME)
        ]
        where = f" WHERE {self._comparison(own)}" if self._chance(50) else ""
        if not pairs:
            return f"EXISTS (SELECT 1 FROM {table} AS {alias}{where})"
        outer, inner = self._one(pairs)
        negated = self._one(["", "NOT "])
        form = self._one(["IN", "EXISTS", "scalar"])
        if form == "IN":
            return f"{outer} {negated}IN (SELECT {inner} FROM {table} AS {alias}{where})"
        more = f" AND {self._comparison(own)}" if self._chance(40) else ""
        if form == "EXISTS":
            correlated = f"{inner} {self._one(['=', '=', '<'])} {outer}"
            return f"{negated}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {correlated}{more})"
        call = self._one(["MAX", "MIN"])
        correlated = self._one([where, f" WHERE {inner} = {outer}{more}"])
        return (
            f"{outer} {self._one(['=', '<', '>='])} "
            f"(SELECT {call}({inner}) FROM {table} AS {alias}{correlated})"
        )

    # -- values ------------------------------------------------------------------------------------

    def _literal(self, type: str) -> str:
        value = self._one([each for each in _VALUES[type] if each is not None])
        if type == STRING:
            return "'" + str(value).replace("'", "''") + "'"
        if type in (DOUBLE, EXTREME):
            return f"CAST({value!r} AS DOUBLE)" if value not in (1e308, -1e308, 5e-324) else "1.5E0"
        if type == BIGINT:
            return f"CAST({value if value != -(2**63) else 7} AS BIGINT)"
        if type == DATE:
            return f"DATE '{value}'"
        if type == TIMESTAMP:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        if type in (DECIMAL, WIDE):
            return f"CAST('{value:f}' AS {type})"
        return str(value).upper()

    def _value(self, type: str, columns: list[Column], depth: int) -> str:
        fitting = [name for name, of in columns if of == type]
        if not fitting:
            made = self._made(type, columns)
            return made if made is not None and self._chance(60) else self._literal(type)
        one, other = self._one(fitting), self._one([*fitting, self._literal(type)])
        if self._chance(50):
            return str(one)
        if self._chance(30):
            condition = self._comparison(columns)
            last = self._one([f" ELSE {other}", " ELSE NULL", ""])
            return f"CASE WHEN {condition} THEN {one}{last} END"
        if self._chance(20):
            return f"{self._one(['COALESCE', 'NULLIF'])}({one}, {other})"
        made = self._computed(type, one, other)
        return made if made is not None else str(one)

    def _computed(self, type: str, one: str, other: str) -> str | None:
        if type == INT:
            forms = [f"{one} + {other}", f"{one} - {other}", f"{one} * {other}", f"ABS({one})"]
            forms += [f"-{one}", f"{one} {either('/', '//')} 2", f"MOD({one}, 2)"]
            forms += [f"CASE WHEN {other} <> 0 THEN 7 {either('/', '//')} {other} ELSE 0 END"]
            return f"CAST({self._one(forms)} AS INT)"
        if type == BIGINT:
            forms = [f"{one} + {other}", f"{one} * {other}", f"{one} - 1"]
            return str(self._one(forms))
        if type == DOUBLE:
            forms = [f"{one} + {other}", f"{one} * 0.5E0", f"FLOOR({one})", f"ABS({one})"]
            forms += [f"CEIL({one})", f"-{one}"]
            return f"CAST({self._one(forms)} AS DOUBLE)"
        if type == DECIMAL:
            forms = [f"{one} + {other}", f"{one} - {other}", f"CAST({one} AS DECIMAL(10, 1))"]
            forms += [f"{one} * {other}", f"ABS({one})", f"-{one}"]
            return f"CAST({self._one(forms)} AS {DECIMAL})"
        if type == STRING:
            forms = [f"UPPER({one})", f"LOWER({one})", f"{one} || {other}", f"TRIM({one})"]
            forms += [f"SUBSTRING({one}, 2)", f"SUBSTRING({one}, 1, 1)"]
            forms += [f"REPLACE({one}, 'a', 'bb')"]
            return str(self._one(forms))
        if type == BOOLEAN:
            return str(self._one([f"NOT {one}", f"({one} AND {other})", f"({one} OR {other})"]))
        if type == DATE:
            return f"CAST({one} + INTERVAL '1' {self._one(['DAY', 'MONTH'])} AS DATE)"
        if type == TIMESTAMP:
            hour = f"{either('FLOOR(', 'date_trunc(' + chr(39) + 'hour' + chr(39) + ', ')}{one}{either(' TO HOUR)', ')')}"
            return str(self._one([f"{one} + INTERVAL '90' MINUTE", hour]))
        return None

    def _made(self, type: str, columns: list[Column]) -> str | None:
        """A value of this type from columns of others."""
        by_type = {of: name for name, of in columns}
        forms = []
        if type == INT:
            forms += [f"CHAR_LENGTH({by_type[STRING]})"] if STRING in by_type else []
            if ARRAY in by_type:
                forms += [f"{either('CARDINALITY', 'len')}({by_type[ARRAY]})"]
                forms += [f"{by_type[ARRAY]}[1]"]
        if type == BIGINT:
            forms += [f"CAST({by_type[INT]} AS BIGINT)"] if INT in by_type else []
            forms += [f"EXTRACT(YEAR FROM {by_type[DATE]})"] if DATE in by_type else []
            forms += [f"EXTRACT(MONTH FROM {by_type[TIMESTAMP]})"] if TIMESTAMP in by_type else []
        if type == STRING:
            forms += [
                f"CAST({by_type[each]} AS STRING)"
                for each in (INT, DATE, DECIMAL)
                if each in by_type
            ]
        if type in (DOUBLE, DECIMAL, WIDE):
            forms += [f"CAST({by_type[INT]} AS {type})"] if INT in by_type else []
        if type == DATE and TIMESTAMP in by_type:
            forms += [f"CAST({by_type[TIMESTAMP]} AS DATE)"]
        if type == TIMESTAMP and DATE in by_type:
            forms += [f"CAST({by_type[DATE]} AS TIMESTAMP(3))"]
        if type == BOOLEAN:
            forms += [f"({self._comparison(columns)})"]
        if not forms:
            return None
        made = str(self._one(forms))
        return f"CAST({made} AS {type})" if type in (INT, BIGINT) else made


def _has_call(item: str) -> bool:
    return any(f"{call}(" in item for call in ("COUNT", "SUM", "AVG", "MIN", "MAX"))
