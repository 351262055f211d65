"""Types from their declarations as text, which is how saved state says what it holds."""

from __future__ import annotations

import ast
from typing import Any

from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.core.codegen.expression_trees import parsed


def type_of_text(text: str) -> TypeInformation | None:
    """The type whose ``repr`` this is; None for any other text.

    >>> type_of_text("Types.MAP(Types.STRING(), Types.LIST(Types.INT()))")
    Types.MAP(Types.STRING(), Types.LIST(Types.INT()))
    >>> type_of_text("Types.ROW_NAMED(['a'], [Types.LONG()])").get_field_names()
    ['a']
    >>> type_of_text("None") is None
    True
    """
    try:
        found = _made(parsed(text))
    except (SyntaxError, ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, TypeInformation) else None


def _made(node: ast.expr) -> Any:
    if isinstance(node, ast.List):
        return [_made(each) for each in node.elts]
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "Types"
        and node.func.attr.isupper()
        and not node.keywords
    ):
        made = getattr(Types, node.func.attr, None)
        if made is not None:
            return made(*map(_made, node.args))
    raise ValueError(f"{ast.unparse(node)} is no type")
