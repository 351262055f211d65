"""Expressions over columns, with the names of PyFlink's Table API: the tree, its meaning for one row, and its Arrow kernels for a batch."""

from flinkpy.columns.data_types import DataTypes
from flinkpy.columns.expression import Expression
from flinkpy.columns.expressions import col, lit

__all__ = ["DataTypes", "Expression", "col", "lit"]
