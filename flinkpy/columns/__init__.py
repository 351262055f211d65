"""Expressions over columns, with the names of PyFlink's Table API: the tree, its meaning for one
row, and the kernels that compute it for a batch.

`values/` converts between rows and columns and never changes a value; `kernels/` computes functions
of whole columns."""

from flinkpy.columns.expression import Expression
from flinkpy.columns.expression_functions import col, lit
from flinkpy.common.logical_types.data_types import DataTypes

__all__ = ["DataTypes", "Expression", "col", "lit"]
