"""The declared type that a JSON Schema describes, as in PyFlink: its types; rules for values
(``minimum``, ``pattern``) have no effect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flinkpy.common.typeinfo import (
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.core.program.program_line import refuse

_DEEPEST = 50


def type_of_json_schema(text: str) -> TypeInformation:
    """The type. Objects become rows, arrays lists, integers ``BIG_INT`` and numbers ``BIG_DEC``. A
    text is a date, a time or an instant by its ``format``, bytes by ``contentEncoding: base64``.
    Raises ProgramError for anything that has no declared type.

    >>> type_of_json_schema(
    ...     '{"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}'
    ... )
    Types.ROW_NAMED(['n'], [Types.BIG_INT()])
    """
    try:
        schema = json.loads(text)
    except (TypeError, ValueError) as error:
        raise refuse(f"the JSON schema is no JSON: {error}") from None
    return _type(schema, schema, 0)


def _type(node: object, root: object, depth: int) -> TypeInformation:
    if not isinstance(node, Mapping) or depth > _DEEPEST:
        raise refuse(
            f"the JSON schema has {node!r:.80}, which is no schema"
            if depth <= _DEEPEST
            else "the JSON schema refers to itself"
        )
    if "$ref" in node:
        return _type(_referred(node["$ref"], root), root, depth + 1)
    if "oneOf" in node or "anyOf" in node:
        kinds = [each for each in node.get("oneOf", node.get("anyOf")) if each != {"type": "null"}]
        if len(kinds) != 1:
            raise refuse(
                f"the JSON schema has a choice of {len(kinds)} types; a field has one type, "
                f"or it and null: {node!r:.100}"
            )
        return _type(kinds[0], root, depth + 1)
    names = node.get("type")
    listed = [name for name in (names if isinstance(names, list) else [names]) if name != "null"]
    if len(listed) != 1:
        raise refuse(f"the JSON schema has {node!r:.100}, and a field has one type, or it and null")
    return _of_name(listed[0], node, root, depth)


def _of_name(name: Any, node: Mapping[str, Any], root: Any, depth: int) -> TypeInformation:
    if name == "object":
        properties = node.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            raise refuse(f"the JSON schema has an object without properties: {node!r:.100}")
        return Types.ROW_NAMED(
            list(properties), [_type(each, root, depth + 1) for each in properties.values()]
        )
    if name == "array":
        items = node.get("items")
        if isinstance(items, list):
            return Types.TUPLE([_type(each, root, depth + 1) for each in items])
        return Types.OBJECT_ARRAY(_type(items, root, depth + 1))
    if name == "string":
        return _text(node)
    single = {"boolean": Types.BOOLEAN, "integer": Types.BIG_INT, "number": Types.BIG_DEC}.get(name)
    if single is None:
        raise refuse(f"the JSON schema has the type {name!r:.80}, which no declared type is")
    return single()


def _text(node: Mapping[str, Any]) -> TypeInformation:
    if node.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    made = {"date-time": Types.INSTANT, "date": Types.SQL_DATE, "time": Types.SQL_TIME}.get(
        node.get("format", ""), Types.STRING
    )
    return made()


def _referred(name: Any, root: Any) -> Any:
    if not isinstance(name, str) or not name.startswith("#"):
        raise refuse(
            f"the JSON schema refers to {name!r:.80}; only references within it "
            "(#/definitions/...) can be followed"
        )
    node = root
    for part in [part for part in name[1:].split("/") if part]:
        try:
            node = (
                node[int(part)]
                if isinstance(node, list)
                else node[part.replace("~1", "/").replace("~0", "~")]
            )
        except (LookupError, TypeError, ValueError):
            raise refuse(f"the JSON schema refers to {name!r:.80}, which is not in it") from None
    return node


# -- the other way ---------------------------------------------------------------------------------


def json_schema_of(type_info: TypeInformation) -> str:
    """The JSON Schema of what is written for the type, whose values may be null.

    >>> json_schema_of(Types.LIST(Types.INT()))
    '{"type": ["array", "null"], "items": {"type": ["integer", "null"]}}'
    """
    return json.dumps(_node(type_info))


def _node(type_info: TypeInformation) -> dict[str, Any]:
    if isinstance(type_info, RowTypeInfo):
        return {
            "type": ["object", "null"],
            "properties": {
                name: _node(each)
                for name, each in zip(type_info.field_names, type_info.field_types)
            },
        }
    if isinstance(type_info, TupleTypeInfo):
        return {"type": ["array", "null"], "items": [_node(each) for each in type_info.field_types]}
    if isinstance(type_info, MapTypeInfo):
        return {"type": ["object", "null"], "additionalProperties": _node(type_info.value_type)}
    if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return {"type": ["string", "null"], "contentEncoding": "base64"}
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return {"type": ["array", "null"], "items": _node(type_info.element_type)}
    return _SINGLE.get(getattr(type_info, "name", ""), {})


_NAMES: dict[str, tuple[str, ...]] = {
    "boolean": ("BOOLEAN",),
    "integer": ("BYTE", "SHORT", "INT", "LONG", "BIG_INT"),
    "string": ("STRING", "CHAR", "BIG_DEC", "SQL_TIME", "SQL_TIMESTAMP", "INSTANT"),
}
_SINGLE: dict[str, dict[str, Any]] = {
    **{name: {"type": [kind, "null"]} for kind, names in _NAMES.items() for name in names},
    # NaN and the infinities are texts
    **{name: {"type": ["number", "string", "null"]} for name in ("DOUBLE", "FLOAT")},
    "SQL_DATE": {"type": ["string", "null"], "format": "date"},
}
