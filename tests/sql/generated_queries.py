"""Queries drawn at random, of which each is valid: joins, groups, subqueries with and without
correlation, set operations, windows of OVER."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

TABLES = {
    "t": {"a": "INT", "b": "BIGINT", "s": "STRING"},
    "u": {"a": "INT", "e": "STRING", "x": "BIGINT"},
    "v": {"b": "BIGINT", "s": "STRING", "a": "INT"},
}
_NUMBERS = ("INT", "BIGINT")


@dataclass
class QueryMaker:
    """Draws queries; ``depth`` bounds how deeply they nest."""

    random: Random
    names: int = 0
    outer: list[tuple[str, str]] = field(default_factory=list)  # columns of the query around

    def query(self, depth: int = 2) -> str:
        """A query with ORDER BY on all of its columns, so that LIMIT has one meaning."""
        body, count = self._body(depth)
        if self.random.random() < 0.3:
            order = ", ".join(f"c{place}" for place in range(count))
            body = f"SELECT * FROM ({body}) AS q{self._name()} ORDER BY {order} LIMIT 7"
        return body

    def _name(self) -> int:
        self.names += 1
        return self.names

    def _body(self, depth: int) -> tuple[str, int]:
        if depth and self.random.random() < 0.2:
            kind = self.random.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            types = [self.random.choice([*_NUMBERS, "STRING"]) for _ in range(2)]
            left, right = self._select(depth - 1, types), self._select(depth - 1, types)
            return f"{left} {kind} {right}", 2
        types = [
            self.random.choice([*_NUMBERS, "STRING"]) for _ in range(self.random.randint(1, 3))
        ]
        return self._select(depth, types), len(types)

    # -- SELECT ------------------------------------------------------------------------------------

    def _select(self, depth: int, types: list[str]) -> str:
        source, columns = self._source(depth)
        where = self._where(depth, columns)
        if self.random.random() < 0.35:
            return self._grouped(source, columns, where, types)
        items = [
            f"{self._value(each, columns, depth)} AS c{place}" for place, each in enumerate(types)
        ]
        distinct = "DISTINCT " if self.random.random() < 0.15 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {source}{where}"

    def _where(self, depth: int, columns: list[tuple[str, str]]) -> str:
        if self.random.random() < 0.3:
            return ""
        parts = [self._condition(depth, columns) for _ in range(self.random.randint(1, 2))]
        return " WHERE " + " AND ".join(parts)

    def _grouped(
        self, source: str, columns: list[tuple[str, str]], where: str, types: list[str]
    ) -> str:
        key, key_type = self.random.choice(columns)
        items = []
        for place, each in enumerate(types):
            value = f"CAST({key} AS {each})" if each == "STRING" or key_type != "STRING" else None
            if each in _NUMBERS and (value is None or self.random.random() < 0.7):
                numbers = [name for name, type in columns if type in _NUMBERS]
                call = self.random.choice(
                    ["COUNT(*)", f"MAX({self.random.choice(numbers)})"]
                    + [f"COUNT(DISTINCT {key})", f"MIN({self.random.choice(numbers)})"]
                )
                value = f"CAST({call} AS {each})"
            items.append(f"{value} AS c{place}")
        having = " HAVING COUNT(*) > 1" if self.random.random() < 0.3 else ""
        return f"SELECT {', '.join(items)} FROM {source}{where} GROUP BY {key}{having}"

    # -- FROM --------------------------------------------------------------------------------------

    def _source(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        text, columns = self._relation(depth)
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            other, more = self._relation(depth)
            kind = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            pairs = [
                f"{one} = {two}"
                for one, type in columns
                for two, other_type in more
                if type == other_type or (type in _NUMBERS and other_type in _NUMBERS)
            ]
            text += f" {kind} {other} ON {self.random.choice(pairs)}"
            columns = columns + more
        return text, columns

    def _relation(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        alias = f"r{self._name()}"
        if depth and self.random.random() < 0.2:
            types = ["INT", "STRING"]
            outer, self.outer = self.outer, []
            text = f"({self._select(depth - 1, types)}) AS {alias}"
            self.outer = outer
            return text, [(f"{alias}.c0", "INT"), (f"{alias}.c1", "STRING")]
        name = self.random.choice(list(TABLES))
        columns = [(f"{alias}.{column}", type) for column, type in TABLES[name].items()]
        return f"{name} AS {alias}", columns

    # -- expressions -------------------------------------------------------------------------------

    def _value(self, type: str, columns: list[tuple[str, str]], depth: int) -> str:
        fitting = [name for name, of in columns if of == type]
        chance = self.random.random()
        if depth and chance < 0.08 and type in _NUMBERS:
            return f"CAST(({self._scalar(depth - 1, columns)}) AS {type})"
        if type == "STRING":
            if fitting and chance < 0.8:
                return self.random.choice(fitting)
            return self.random.choice(["'x'", "CAST(1 AS STRING)", "UPPER('y')"])
        if fitting and chance < 0.6:
            return self.random.choice(fitting)
        if fitting and chance < 0.8:
            condition = self._comparison(columns)
            return f"CASE WHEN {condition} THEN {self.random.choice(fitting)} ELSE NULL END"
        return f"CAST({self.random.randint(0, 3)} AS {type})"

    def _comparison(self, columns: list[tuple[str, str]]) -> str:
        name, type = self.random.choice(columns)
        if type == "STRING":
            return self.random.choice(
                [f"{name} = 'x'", f"{name} IS NULL", f"{name} IN ('x', 'y')", f"{name} LIKE 'x%'"]
            )
        operator = self.random.choice(["=", "<>", "<", ">="])
        others = [other for other, of in columns if of in _NUMBERS]
        value = self.random.choice([*others, str(self.random.randint(0, 3))])
        return self.random.choice(
            [f"{name} {operator} {value}", f"{name} BETWEEN 1 AND 2", f"{name} IS NOT NULL"]
        )

    def _condition(self, depth: int, columns: list[tuple[str, str]]) -> str:
        chance = self.random.random()
        if depth and chance < 0.35:
            return self._subquery(depth - 1, columns)
        if chance < 0.5:
            return f"({self._comparison(columns)} OR {self._comparison(columns)})"
        if chance < 0.6:
            return f"NOT ({self._comparison(columns)})"
        return self._comparison(columns)

    def _subquery(self, depth: int, columns: list[tuple[str, str]]) -> str:
        number = self.random.choice([name for name, of in columns if of in _NUMBERS])
        negated = self.random.choice(["", "", "NOT "])
        chance = self.random.random()
        if chance < 0.4:
            alias = f"s{self._name()}"
            table = self.random.choice(list(TABLES))
            return (
                f"{negated}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE "
                f"{alias}.a = {number}{self._more(table, alias, columns)})"
            )
        if chance < 0.75:
            return f"{number} {negated}IN ({self._numbers(depth, columns)})"
        return f"{number} {self.random.choice(['=', '<', '>='])} ({self._scalar(depth, columns)})"

    def _more(self, table: str, alias: str, columns: list[tuple[str, str]]) -> str:
        if self.random.random() < 0.5:
            return ""
        own = [(f"{alias}.{name}", type) for name, type in TABLES[table].items()]
        return f" AND {self._comparison(own)}"

    def _numbers(self, depth: int, columns: list[tuple[str, str]]) -> str:
        alias = f"s{self._name()}"
        table = self.random.choice(list(TABLES))
        own = [(f"{alias}.{name}", type) for name, type in TABLES[table].items()]
        where = f" WHERE {self._comparison(own)}" if self.random.random() < 0.6 else ""
        return f"SELECT {alias}.a FROM {table} AS {alias}{where}"

    def _scalar(self, depth: int, columns: list[tuple[str, str]]) -> str:
        alias = f"s{self._name()}"
        table = self.random.choice(list(TABLES))
        call = self.random.choice(["MAX", "MIN", "COUNT"])
        numbers = [name for name, of in columns if of in _NUMBERS]
        where = f" WHERE {alias}.a = {self.random.choice(numbers)}" if numbers else ""
        if self.random.random() < 0.3:
            where = ""
        return f"SELECT {call}({alias}.a) FROM {table} AS {alias}{where}"
