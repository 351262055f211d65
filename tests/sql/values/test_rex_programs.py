"""Typed expressions of a plan become a flat program."""

from __future__ import annotations

import datetime
import re
import zoneinfo

import pyarrow as pa
import pytest

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.calc_program import CallNode
from flinkpy.core.clock import StoppedClock
from flinkpy.core.errors import BadRecordError
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.rex.rex_programs import program_of
from tests.sql.values.reference_values import bound

REGISTRY = built_in_functions()


def compiled(*texts: str) -> CompiledCalc:
    outputs = [bound(each) for each in texts]
    return CompiledCalc(program_of(outputs, None, REGISTRY, names=["o"]), list(texts))


def test_an_error_of_a_row_is_written_as_the_statement_has_it() -> None:
    calc = compiled("10 / (o - 1)")
    batch = pa.record_batch([pa.array([3, 1])], names=["o"])
    wanted = "(10 / (o - 1)): division by zero, in the row (o=1)"
    with pytest.raises(BadRecordError, match=re.escape(wanted)):
        calc(batch)


def test_equal_parts_of_several_columns_are_one_node() -> None:
    program = program_of([bound("o * 2 + 1"), bound("o * 2 - 1")], None, REGISTRY)
    calls = [each.function for each in program.nodes if isinstance(each, CallNode)]
    assert calls.count("*") == 1


def test_a_text_that_is_no_number_names_the_cast() -> None:
    calc = compiled("CAST(CAST(o AS STRING) AS TINYINT)")
    with pytest.raises(BadRecordError, match=r"CAST\(CAST\(o AS STRING\) AS TINYINT\): '300'"):
        calc(pa.record_batch([pa.array([1, 300])], names=["o"]))


def test_a_call_can_fail_where_its_types_and_constants_let_it() -> None:
    failing = ["10 / o", "10 % o", "10.5 / o", "CAST(SQRT(o) AS DECIMAL(3, 1))", "o / 0"]
    safe = ["o / 10", "o % 10", "1e0 / o", "CAST(o AS TINYINT)", "CAST(o AS DECIMAL(3, 1))"]
    texts = ["CAST(CAST(o AS STRING) AS INT)", "CAST(CAST(o AS STRING) AS BYTES)"]
    for text, can_fail in [*((each, True) for each in failing), *((each, False) for each in safe)]:
        nodes = program_of([bound(text)], None, REGISTRY).nodes
        assert any(isinstance(each, CallNode) and each.can_fail for each in nodes) is can_fail, text
    [*_, number], [*_, data] = (program_of([bound(each)], None, REGISTRY).nodes for each in texts)
    assert isinstance(number, CallNode)
    assert isinstance(data, CallNode)
    assert (number.can_fail, data.can_fail) == (True, False)


def test_an_expression_of_a_plan_nests_as_deeply_as_it_likes() -> None:
    deep: Rex = bound("+".join(["o"] * 1200))
    calc = CompiledCalc(program_of([deep], None, REGISTRY, names=["o"]), ["sum"])
    assert calc(pa.record_batch([pa.array([2])], names=["o"])).to_pydict() == {"sum": [2400]}


def test_the_time_is_that_of_the_clock_in_the_zone_of_the_session() -> None:
    texts = ["CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATE", "UNIX_TIMESTAMP()"]
    clock = StoppedClock(1_700_000_000_123)  # 2023-11-14 22:13:20.123 UTC
    program = program_of(
        [bound(each) for each in texts], None, REGISTRY, zone="Asia/Shanghai", clock=clock
    )
    found = CompiledCalc(program, ["a", "b", "c", "d"])(
        pa.record_batch([pa.array([1, 2])], names=["o"])
    )
    local = datetime.datetime(2023, 11, 15, 6, 13, 20, 123_000)
    zoned = local.replace(tzinfo=zoneinfo.ZoneInfo("Asia/Shanghai"))
    seconds = 1_700_000_000
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (zoned, local, local.date(), seconds)
    ] * 2
