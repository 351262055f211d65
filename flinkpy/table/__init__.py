"""Tables and SQL, under the names of PyFlink's Table API.

>>> from flinkpy.table import EnvironmentSettings, TableEnvironment
>>> table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
>>> table_env.execute_sql("SELECT 1 + 1").print()  # doctest: +SKIP
"""

from flinkpy.columns import DataTypes, Expression, col, lit
from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import Row, RowKind
from flinkpy.core.program.public_names import publish
from flinkpy.table.environment_settings import EnvironmentSettings
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.result_kind import ResultKind
from flinkpy.table.schema import Schema
from flinkpy.table.statement_set import StatementSet
from flinkpy.table.table import (
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    Table,
    WindowGroupedTable,
)
from flinkpy.table.table_config import TableConfig
from flinkpy.table.table_descriptor import FormatDescriptor, TableDescriptor
from flinkpy.table.table_environment import StreamTableEnvironment, TableEnvironment
from flinkpy.table.table_result import TableResult
from flinkpy.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
)

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "GroupWindowedTable",
    "OverWindowedTable",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "WindowGroupedTable",
    "ChangelogMode",
    "DataTypes",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "GroupedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "Schema",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableResult",
    "col",
    "lit",
]

publish(__name__)
