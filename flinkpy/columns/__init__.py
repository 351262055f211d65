"""Expressions over columns, with the names of PyFlink's Table API: the tree, its meaning for one
row, and the kernels that compute it for a batch.

`values/` converts between rows and columns and never changes a value; `kernels/` computes functions
of whole columns."""

from flinkpy.columns.data_types import DataTypes
from flinkpy.columns.expression import Expression
from flinkpy.columns.expression_functions import col, lit

__all__ = ["DataTypes", "Expression", "col", "lit"]
