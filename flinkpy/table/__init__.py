"""Expressions over columns, at the module path they have in PyFlink's Table API."""

from flinkpy.columns import DataTypes, Expression, col, lit

__all__ = ["DataTypes", "Expression", "col", "lit"]
