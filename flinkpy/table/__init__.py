"""Expressions over columns, with the names of PyFlink's Table API: the tree, its meaning for one row, and its Arrow kernels for a batch."""

from flinkpy.table.data_types import DataTypes
from flinkpy.table.expression import Expression
from flinkpy.table.expressions import col, lit

__all__ = ["DataTypes", "Expression", "col", "lit"]
