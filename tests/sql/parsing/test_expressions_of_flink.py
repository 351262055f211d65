"""Every expression whose value Flink was asked for."""

import csv
from pathlib import Path

from flinkpy.sql.parsing import parse_expression

_VALUES = Path(__file__).parents[1] / "reference" / "flink_sql_values.tsv"


def test_every_expression_of_the_reference_is_read() -> None:
    with _VALUES.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) >= 335
    for row in rows:
        text = row["expression"]
        tree = parse_expression(text)
        assert text[tree.span.start : tree.span.end] == text
