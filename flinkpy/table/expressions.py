"""``col``, ``lit`` and the functions of expressions, at PyFlink's module path."""

from flinkpy.columns.expressions import and_, coalesce, col, concat, concat_ws, if_then_else, lit, not_, null_of, or_

__all__ = ["and_", "coalesce", "col", "concat", "concat_ws", "if_then_else", "lit", "not_", "null_of", "or_"]
