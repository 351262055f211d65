"""From the text of a statement to its tree."""

from flinkpy.sql.parsing.parse import (
    ScriptStatement,
    parse_expression,
    parse_script,
    parse_statement,
    parse_type,
)

__all__ = ["ScriptStatement", "parse_expression", "parse_script", "parse_statement", "parse_type"]
