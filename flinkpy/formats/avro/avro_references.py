"""Avro schemas that refer to others of a schema registry, as one schema each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flinkpy.formats.port import RegisteredSchema

_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def self_contained(schema: RegisteredSchema) -> str:
    """The schema's text. A type that another schema defines is defined where its name comes first,
    as Avro wants it.

    >>> md5 = RegisteredSchema("AVRO", '{"type": "fixed", "name": "md5", "size": 16}')
    >>> self_contained(
    ...     RegisteredSchema("AVRO", '{"type": "array", "items": "md5"}', (("md5", md5),))
    ... )
    '{"type": "array", "items": {"type": "fixed", "name": "md5", "size": 16, "namespace": ""}}'
    """
    if not schema.references:
        return schema.text
    return json.dumps(_with_definitions(json.loads(schema.text), "", dict(_definitions(schema))))


def _definitions(schema: RegisteredSchema) -> Iterator[tuple[str, Any]]:
    """The types that the schema refers to, and those that these refer to, by their full names."""
    for name, other in schema.references:
        yield from _definitions(other)
        node = json.loads(other.text)
        yield (
            (
                _full_name(node["name"], node.get("namespace", ""))
                if isinstance(node, dict) and "name" in node
                else name
            ),
            node,
        )


def _with_definitions(node: Any, namespace: str, undefined: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_with_definitions(each, namespace, undefined) for each in node]
    if isinstance(node, str):
        name = _full_name(node, namespace)
        found = undefined.pop(name if name in undefined else node, None)
        if node in _PRIMITIVE or found is None:
            return node
        return _with_definitions(
            {**found, "namespace": found.get("namespace", "")}
            if isinstance(found, dict)
            else found,
            "",
            undefined,
        )
    if node["type"] in ("record", "error"):
        inside = _full_name(node["name"], node.get("namespace", namespace)).rpartition(".")[0]
        return {
            **node,
            "fields": [
                {**each, "type": _with_definitions(each["type"], inside, undefined)}
                for each in node["fields"]
            ],
        }
    if node["type"] in ("array", "map"):
        part = "items" if node["type"] == "array" else "values"
        return {**node, part: _with_definitions(node[part], namespace, undefined)}
    if node["type"] in ("enum", "fixed"):
        return node
    return {**node, "type": _with_definitions(node["type"], namespace, undefined)}


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
