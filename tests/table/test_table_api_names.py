"""PyFlink's names of tables, environments, expressions, windows and functions: each is there, or
listed as absent with its reason, here and on the page."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from flinkpy.table.expressions import col

PAGE = Path(__file__).parents[2] / "docs" / "sql" / "table-api.md"
NAMES = (Path(__file__).parent / "pyflink_names.txt").read_text().split()

_PLANS = "plans are not compiled yet; a savepoint restores the same query"
_MODULES = "there is one module, core"
_MODELS = "models are not supported; call them in a function of your own"
_CHANGES = "from_changelog_stream() and to_changelog_stream() of an environment convert"
_JSON = 'write call_sql("JSON_VALUE(...)"), with SQL\'s words for NULL, empty and errors'
_WRAPPER = "udf, udtf and udaf make a UserDefinedFunctionWrapper"
_WINDOW = "a step of a window in the making; every step is a GroupWindow or an OverWindow"
_VIEW = "an accumulator may be any object: use a list or a dict"

ABSENT: dict[str, str] = {
    **dict.fromkeys(("CompiledPlan", "PlanReference", "TablePipeline"), _PLANS),
    **dict.fromkeys(("compile_plan_sql", "execute_plan", "load_plan"), _PLANS),
    **dict.fromkeys(("Module", "ModuleEntry", "load_module", "unload_module"), _MODULES),
    **dict.fromkeys(("use_modules", "list_full_modules"), _MODULES),
    **dict.fromkeys(("create_model", "create_temporary_model", "drop_model"), _MODELS),
    **dict.fromkeys(("drop_temporary_model", "list_models", "list_temporary_models"), _MODELS),
    **dict.fromkeys(("from_changelog", "to_changelog"), _CHANGES),
    **dict.fromkeys(("is_json", "json_exists", "json_query", "json_value"), _JSON),
    **dict.fromkeys(("json_array", "json_array_agg", "json_object", "json_object_agg"), _JSON),
    **dict.fromkeys(("DataView", "ListView", "MapView"), _VIEW),
    **dict.fromkeys(
        (
            "DelegatingAsyncScalarFunction",
            "DelegatingPandasAggregateFunction",
            "DelegatingScalarFunction",
            "DelegationTableFunction",
            "PandasAggregateFunctionWrapper",
            "UserDefinedAggregateFunctionWrapper",
            "UserDefinedAsyncScalarFunctionWrapper",
            "UserDefinedScalarFunctionWrapper",
            "UserDefinedTableFunctionWrapper",
        ),
        _WRAPPER,
    ),
    **dict.fromkeys(
        (
            "OverWindowPartitioned",
            "OverWindowPartitionedOrdered",
            "OverWindowPartitionedOrderedPreceding",
            "SessionWithGap",
            "SessionWithGapOnTime",
            "SlideWithSize",
            "SlideWithSizeAndSlide",
            "SlideWithSizeAndSlideOnTime",
            "TumbleWithSize",
            "TumbleWithSizeOnTime",
        ),
        _WINDOW,
    ),
    "SqlDialect": "there is one dialect, Flink's",
    "TableSchema": "deprecated by Flink; get_schema() gives the ROW of a table",
    "UserDefinedType": "a ROW has the same parts",
    "Expression.__getattr__": "fields of a ROW are col('r').get('name')",
    "Expression.__getitem__": "elements are at(index), fields get(name)",
    "as_argument": "arguments of functions stand in their order",
    "flatten": "name the fields: col('r').get('a'), col('r').get('b')",
    "object_of": "structured types are Java classes; use row(...)",
    "object_update": "structured types are Java classes; use row(...)",
    "descriptor": "windows of tables are Tumble, Slide and Session",
    "WindowGroupedTable.aggregate": "call the aggregate in select()",
    "list_materialized_tables": "there are no materialized tables",
}


def is_there(name: str) -> bool:
    parts = name.split(".")
    if parts[:3] == ["table", "expression", "Expression"]:
        # of an aggregate: it has distinct too
        return any(parts[3] in vars(base) for base in type(col("a").count).__mro__)
    found: Any = importlib.import_module("flinkpy.table")
    rest = parts[1:]
    while rest:
        step = rest.pop(0)
        try:
            found = importlib.import_module(f"{found.__name__}.{step}")
        except (ModuleNotFoundError, AttributeError):
            if not hasattr(found, step):
                return False
            found = getattr(found, step)
    return True


def is_absent(name: str) -> bool:
    parts = name.split(".")
    return parts[-1] in ABSENT or ".".join(parts[-2:]) in ABSENT


def test_every_name_is_there_or_listed_with_its_reason() -> None:
    there = {name for name in NAMES if is_there(name)}
    assert [name for name in NAMES if name not in there and not is_absent(name)] == []
    assert [name for name in sorted(there) if is_absent(name)] == []
    known = {name.rpartition(".")[2] for name in NAMES}
    assert [name for name in ABSENT if name.rpartition(".")[2] not in known] == []


def test_the_page_lists_what_is_absent() -> None:
    reasons: dict[str, list[str]] = {}
    for name, reason in ABSENT.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()]
    assert "\n".join(rows) in PAGE.read_text()
