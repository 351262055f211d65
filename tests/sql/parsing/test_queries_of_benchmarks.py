"""The 22 queries of TPC-H and the 23 of Nexmark."""

from pathlib import Path

import pytest

from flinkpy.sql.parsing import parse_script, parse_statement
from flinkpy.sql.syntax.statements import Insert, QueryStatement

_SQL = Path(__file__).parents[1]
_TPCH = sorted((_SQL / "tpch").glob("q*.sql"))
_NEXMARK_SQL = _SQL.parents[1] / "examples" / "nexmark" / "sql"
_NEXMARK = sorted(_NEXMARK_SQL.glob("q*.sql"))


def test_the_files_are_all_there() -> None:
    assert len(_TPCH) == 22
    assert len(_NEXMARK) == 23


@pytest.mark.parametrize(
    "file", _TPCH + _NEXMARK, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_a_query_of_a_benchmark_is_read(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    statement = parse_statement(text)
    assert isinstance(statement, Insert if file in _NEXMARK else QueryStatement)
    assert text[statement.span.end :].strip() == ""


def test_the_tables_of_nexmark_are_a_script() -> None:
    pieces = parse_script((_NEXMARK_SQL / "tables.sql").read_text(encoding="utf-8"))
    kinds = [type(piece.statement).__name__ for piece in pieces]
    assert kinds == ["CreateTable", "CreateView", "CreateView", "CreateView", "CreateTable"]
