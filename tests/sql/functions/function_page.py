"""The page of functions, docs/sql/functions.md, made from the registry: how each is called, what it
gives, and an example that is run.

python -m tests.sql.functions.function_page"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS
from flinkpy.relational.aggregates.group_functions import ACCUMULATORS
from flinkpy.sql.functions.built_in.absent_functions import ABSENT
from flinkpy.sql.functions.built_in.chapters import CHAPTERS
from flinkpy.sql.functions.built_in.temporal_entries import GROUP_WINDOWS
from flinkpy.sql.functions.built_in_function import BuiltInFunction
from flinkpy.sql.functions.built_in_functions import ALIASES
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.refused_calls import call_text
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.results.cell_texts import text_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql" / "functions.md"
TEXTS = Path(__file__).with_name("function_texts.tsv")
HEAD = """# Functions of SQL

Every function that SQL has without being declared. The page is made from the registry (`python -m tests.sql.functions.function_page`); each example is run by a test,
and gives what Flink 2.3 gives.

- `<NUMERIC>` and the like are kinds of types: any number, any text (`<CHARACTER_STRING>`), any time (`<DATETIME>`), any type that has an order (`<COMPARABLE>`), any type
  (`<ANY>`). What is narrower is cast; `...` may be repeated.
- A function gives null where an argument is null, unless its sentence says something else. Names may be written in small letters.
- The last column is the name in the Table API, where it is PyFlink's. Functions of your own are called in the same way ([Python](python.md)).

Examples of aggregates are over the table `(VALUES ('a', 1, 0.5e0), ('b', 2, 1.5e0), ('c', 3, 4e0)) AS e (t, v, x)`; those with `OVER` show the value of each row.
"""
TITLES = {
    "comparison": "Comparison",
    "logic": "Logic",
    "arithmetic": "Arithmetic",
    "text": "Text",
    "time": "Time",
    "choice": "Choice",
    "conversion": "Conversion and the session",
    "collections": "Arrays, maps and multisets",
    "json": "JSON",
    "construction and access": "Construction and access",
    "hashes": "Hashes",
    "bitmaps": "Bitmaps",
    "aggregates": "Aggregates",
    "ranks": "Ranks and neighbours",
    "windows of GROUP BY": "Windows of GROUP BY",
}
# The planner puts something else in their place.
PLANNED_AWAY = frozenset(
    {"CURRENT_DATABASE", "GROUPING", "GROUPING_ID", "GROUP_ID", *(f.name for f in GROUP_WINDOWS)}
    | {"CURRENT_WATERMARK", "SOURCE_WATERMARK"}
)
_ROWS = "(VALUES ('a', 1, 0.5e0), ('b', 2, 1.5e0), ('c', 3, 4e0)) AS e (t, v, x)"
_BITMAPS = """A `BITMAP` is a set of numbers from 0 to 2^32 - 1. `collect()`, Arrow and pandas give it as bytes in the portable form of Roaring bitmaps, which other systems
(and `pyroaring.BitMap.deserialize`) read; `CAST` to a text and `print()` show its numbers.
"""
_DIFFERENT = r"""## What differs from Flink 2.3

| | Flink | here | why |
|---|---|---|---|
| NaN | `x = NaN` is false where it is computed for a row, and true as a key of GROUP BY, of a join, of IN (SELECT ...) and where the planner sees `x = x`; MIN and MAX depend on the order of rows | NaN equals NaN and is greater than all numbers, everywhere | a rewritten query must not change its answer |
| -0.0 | equals 0.0 in `=`, ORDER BY and OVER, and is another key in GROUP BY, DISTINCT and joins | equals 0.0 everywhere | the same |
| `ARRAY_AGG(a ORDER BY b)` | takes the order without a word and ignores it | has the order | |
| `LISTAGG(...) WITHIN GROUP (ORDER BY b)` | refused | has the order | |
| `COUNT(DISTINCT a, b)` | cannot be planned | counts | |
| `BITMAP_BUILD_AGG` in BATCH | fails when it is compiled | runs | |
| `JSON_ARRAYAGG(date)` and other times | refused | writes ISO 8601 | |
| `INSERT ... VALUES (NULL)` | refused: the NULL has no type | is a null of the column | |
| `a SIMILAR TO 'x.z'` | `.` is any character, and `^` is not itself | both are themselves, as SQL says; `_` is any character | |
| `EXTRACT` and its like of a TIMESTAMP_LTZ before 1970 in a zone west of UTC | negative hours, the day and year of UTC | the parts that the zone's clock shows | |
| `LEAD(a, 1, b)` where b is NOT NULL | NOT NULL, and may yet give null | may be null | |
| `ROUND(DECIMAL, digits)` where `digits` is no constant | loses the place of the point: 12.356 for 1235.6 | rounds | |
| `JSON_VALUE(... RETURNING INT)` of what is no integer | fails, whatever ON ERROR says | does what ON ERROR says | |
| a FLOAT constant | `CAST(0.1 AS FLOAT)` keeps all digits while it is cast on, compared or in COALESCE, and has those of a FLOAT in ABS, `+` and rows | has the digits of a FLOAT | a rewritten query must not change its answer |
| LPAD and RPAD with an empty text or a negative length, DECIMAL overflow | NOT NULL and yet null: a job fails where such a value is a column of its result, `UPPER` and `\|\|` of the constant give an empty text | null, in every place | |

Of 377 expressions that a live Flink 2.3 has computed, 374 have its value, to the letter. Three differ. They are constants, and flinkpy gives what it gives for the values of a column:
`CAST(CAST(0.1 AS FLOAT) AS DOUBLE)`, `LPAD('abc', 5, '')` and `LPAD('abc', -1, 'x')`.
"""


@dataclass(frozen=True)
class FunctionText:
    """What the page says of a function. ``example`` is empty where its value changes."""

    name: str
    form: str
    sentence: str
    example: str


def function_texts() -> dict[str, FunctionText]:
    """The texts by name."""
    with TEXTS.open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["name"]: FunctionText(**row) for row in rows}


def functions_of_page() -> Iterator[tuple[str, BuiltInFunction]]:
    """Each chapter's functions."""
    for chapter, entries in CHAPTERS.items():
        for each in entries:
            if each.name not in ("$SUM0", "SINGLE_VALUE"):
                yield chapter, each


def results(texts: Sequence[FunctionText]) -> dict[str, str]:
    """The result of each example, in three queries: scalars, aggregates, and calls with OVER."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    kinds = {each.name: chapter for chapter, each in functions_of_page()}
    examples = [each for each in texts if each.example]
    over = [each for each in examples if " OVER (" in each.example]
    aggregates = [each for each in examples if kinds[each.name] == "aggregates"]
    scalars = [each for each in examples if each not in over and each not in aggregates]
    found: dict[str, str] = {}
    for group, source in ((scalars, ""), (aggregates, f" FROM {_ROWS}"), (over, f" FROM {_ROWS}")):
        calls = ", ".join(each.example for each in group)
        result = tables.execute_sql(f"SELECT {calls}{source}")
        write = [text_of(field.type, null="NULL") for field in result.get_resolved_schema()]
        with result.collect() as rows:
            shown = [[text(value) for text, value in zip(write, row)] for row in rows]
        for each, values in zip(group, zip(*shown)):
            found[each.name] = ", ".join(values)
    return found


def signatures(function: BuiltInFunction) -> str:
    """How it is called, a way a line."""
    ways = [call_text(function.name, shape.texts) for shape in function.shapes]
    return "<br>".join(f"`{_cell(each)}`" for each in ways)


def runs(function: BuiltInFunction) -> bool:
    """Whether a statement with it runs; others are planned, and refused where they run."""
    if function.kind is FunctionKind.WINDOW or function.name in PLANNED_AWAY:
        return True
    return function.name in (SQL_KERNELS if function.kind is FunctionKind.SCALAR else ACCUMULATORS)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page() -> str:
    """The whole page."""
    texts = function_texts()
    found = results(list(texts.values()))
    parts = [HEAD]
    chapter = ""
    for title, function in functions_of_page():
        if title != chapter:
            chapter = title
            more = f"\n{_BITMAPS}" if title == "bitmaps" else ""
            head = "| call | what it gives | example | result | Table API |\n|---|---|---|---|---|"
            parts.append(f"\n## {TITLES[title]}\n{more}\n{head}")
        text = texts[function.name]
        call = f"`{_cell(text.form)}`" if text.form else signatures(function)
        example = f"`{_cell(text.example)}`" if text.example else ""
        result = f"`{_cell(found[text.name])}`" if text.example else ""
        python = f"`{_cell(function.python_name)}`" if function.python_name else ""
        sentence = (
            text.sentence
            if runs(function)
            else f"{text.sentence} It is planned, and does not run yet."
        )
        parts.append(f"| {call} | {sentence} | {example} | {result} | {python} |")
    parts.append("\n## Other names\n")
    parts += [f"- `{_cell(name)}` is `{_cell(meant)}`" for name, meant in ALIASES.items()]
    parts.append("\n## What is not there\n\n| function | why |\n|---|---|")
    parts += [f"| `{name}` | {_cell(why)} |" for name, why in ABSENT.items()]
    parts.append(f"\n{_DIFFERENT}")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
