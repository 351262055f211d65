"""Every expression whose value Flink was asked for."""

import csv
import subprocess
import sys
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


def test_sqlglot_is_imported_at_the_first_text_only() -> None:
    program = (
        "import sys, flinkpy.sql.parsing as parsing\n"
        "assert 'sqlglot' not in sys.modules\n"
        "parsing.parse_expression('1')\n"
        "assert 'sqlglot' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
