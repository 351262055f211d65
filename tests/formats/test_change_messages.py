"""Messages that tell changes: what rows come of them, what is written, and what is refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.formats.changes.canal_json import CanalJsonDecoder, CanalJsonEncoder
from flinkpy.formats.changes.debezium_json import DebeziumJsonDecoder, DebeziumJsonEncoder
from flinkpy.formats.changes.upserts import UpsertDecoder, UpsertEncoder
from flinkpy.formats.json.json_columns import JsonColumnarDecoder, JsonColumnarEncoder
from flinkpy.formats.port import ChangelogDecoder, ChangelogEncoder, MalformedMessageError

SCHEMA = pa.schema(
    [pa.field("id", pa.int32(), nullable=False), ("name", pa.string()), ("w", pa.float64())]
)
KINDS = ["+I", "-U", "+U", "-D"]


def told(decoder: ChangelogDecoder, messages: list[Any]) -> list[tuple[Any, ...]]:
    """Each change: which message tells it, its kind and its values."""
    as_bytes = [
        each if each is None or type(each) is bytes else json.dumps(each) for each in messages
    ]
    given = [each.encode() if isinstance(each, str) else each for each in as_bytes]
    decoder = pickle.loads(pickle.dumps(decoder))
    changes = decoder.decode_changes(given)
    assert changes.batch.schema.equals(decoder.schema)
    rows = changes.batch.to_pylist()
    return [
        (int(at), KINDS[kind], *row.values())
        for at, kind, row in zip(changes.origins, changes.kinds, rows)
    ]


def row(id: Any, name: str | None, w: Any = None) -> dict[str, Any]:
    return {"id": id, "name": name, "w": w}


def test_debezium_tells_the_row_before_and_the_row_after() -> None:
    messages = [
        {"before": None, "after": row(1, "a", 0.5), "op": "r", "ts_ms": 1},
        {"after": row(2, None), "op": "c", "source": {"table": "t"}},
        None,
        {"before": row(1, "a", 0.5), "after": row(1, "b", 2), "op": "u"},
        b"",
        {"before": row(2, None), "after": None, "op": "d"},
        {"before": row(1, "b", 2), "after": row(1, "b", 3), "op": "u"},
    ]
    wanted = [
        (0, "+I", 1, "a", 0.5),
        (1, "+I", 2, None, None),
        (3, "-U", 1, "a", 0.5),
        (3, "+U", 1, "b", 2.0),
        (5, "-D", 2, None, None),
        (6, "-U", 1, "b", 2.0),
        (6, "+U", 1, "b", 3.0),
    ]
    assert told(DebeziumJsonDecoder(SCHEMA), messages) == wanted
    with_schema = [each and {"schema": {"x": [1]}, "payload": each} for each in messages]
    assert told(DebeziumJsonDecoder(SCHEMA, schema_include=True), with_schema) == wanted
    assert told(DebeziumJsonDecoder(SCHEMA), [None]) == []


def test_canal_tells_rows_and_what_changed_fields_were() -> None:
    messages = [
        {"data": [row("1", "a", "0.5"), row(2, None)], "old": None, "type": "INSERT"},
        {"data": None, "type": "CREATE", "sql": "create table t"},
        {
            "data": [row("1", None, "2"), row("2", "c")],
            "old": [{"name": "a", "w": "0.5"}, {"name": None}],
            "type": "UPDATE",
        },
        {"data": [row("2", "c")], "type": "DELETE", "database": "shop", "table": "orders"},
    ]
    wanted = [
        (0, "+I", 1, "a", 0.5),
        (0, "+I", 2, None, None),
        (2, "-U", 1, "a", 0.5),
        (2, "+U", 1, None, 2.0),
        (2, "-U", 2, None, None),
        (2, "+U", 2, "c", None),
        (3, "-D", 2, "c", None),
    ]
    assert told(CanalJsonDecoder(SCHEMA), messages) == wanted
    of_shop = CanalJsonDecoder(SCHEMA, databases="sh.*", tables="orders")
    assert told(of_shop, messages) == wanted[-1:]


DEBEZIUM = {
    b'{"op": "c", "after": {"id": 1}': "it is no JSON",
    b'{"op": "x", "after": {"id": 1}}': "its \"op\" is 'x', and there are c, r, u, d",
    b'{"op": "c", "before": {"id": 1}}': 'its "after" is null',
    b'{"op": "u", "after": {"id": 1}}': "of an UPDATE message is null.*REPLICA IDENTITY FULL",
    b'{"op": "d", "after": {"id": 1}}': "of a DELETE message is null.*REPLICA IDENTITY FULL",
    b'{"op": "c", "after": {"id": "x"}}': "field 'after': field 'id': 'x' \\(str\\) is no value",
}
CANAL = {
    b"[]": "it is no JSON object",
    b'{"type": "MERGE"}': "its \"type\" is 'MERGE', and there are INSERT, DELETE, UPDATE",
    b'{"type": "INSERT", "data": {}}': 'its "data" is no list of rows',
    b'{"type": "UPDATE", "data": [{}], "old": []}': '"data" has 1 rows, and "old" has 0',
    b'{"type": "INSERT", "data": [{"id": "1x"}]}': "field 'id': '1x' is no whole number",
}


@pytest.mark.parametrize(
    ("make", "message", "why"),
    [
        *((DebeziumJsonDecoder, message, why) for message, why in DEBEZIUM.items()),
        *((CanalJsonDecoder, message, why) for message, why in CANAL.items()),
    ],
)
def test_a_malformed_message_is_named_or_left_out_if_the_option_says_so(
    make: Any, message: bytes, why: str
) -> None:
    good = b'{"op": "c", "type": "INSERT", "after": {"id": 1}, "data": [{"id": 1}]}'
    with pytest.raises(MalformedMessageError, match=f"message 2 cannot be decoded: .*{why}"):
        make(SCHEMA).decode_changes([None, good, message, good])
    lenient = make(SCHEMA, ignore_parse_errors=True)
    assert [each[:2] for each in told(lenient, [None, good, message, good])] == [
        (1, "+I"),
        (3, "+I"),
    ]


def test_a_null_where_none_may_be_names_its_message() -> None:
    for make in (DebeziumJsonDecoder, CanalJsonDecoder):
        good = b'{"op": "c", "type": "INSERT", "after": {"id": 1}, "data": [{"id": 1}]}'
        bad = good.replace(b"1", b"null")
        with pytest.raises(MalformedMessageError, match=r"message 1 .*'id' has a null"):
            make(SCHEMA).decode_changes([good, bad])


@pytest.mark.parametrize(
    ("encoder", "inserted", "deleted"),
    [
        (
            DebeziumJsonEncoder(["id", "name"]),
            '{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
            '{"before":{"id":1,"name":"a"},"after":null,"op":"d"}',
        ),
        (
            CanalJsonEncoder(["id", "name"]),
            '{"data":[{"id":1,"name":"a"}],"type":"INSERT"}',
            '{"data":[{"id":1,"name":"a"}],"type":"DELETE"}',
        ),
        (UpsertEncoder(JsonColumnarEncoder()), '{"id":1,"name":"a","more":0}', None),
    ],
)
def test_an_insert_or_a_delete_is_written_of_each_row(
    encoder: ChangelogEncoder, inserted: str, deleted: str | None
) -> None:
    one = pa.record_batch({"id": [1] * 4, "name": ["a"] * 4, "more": [0] * 4})
    gone = None if deleted is None else deleted.encode()
    messages = encoder.encode_changes(one, np.arange(4, dtype=np.int8))
    assert messages == [inserted.encode(), gone, inserted.encode(), gone]
    assert encoder.encode(one.slice(0, 1)) == [inserted.encode()]


def test_an_upsert_replaces_the_row_of_its_key_and_one_without_a_value_deletes_it() -> None:
    key = JsonColumnarDecoder(pa.schema([pa.field("id", pa.int32(), nullable=False)]))
    keys, values = [b'{"id":1}', b'{"id":2}'], [b'{"id":7,"name":"a"}', None]
    whole = UpsertDecoder(key, JsonColumnarDecoder(SCHEMA), ["id"], SCHEMA)
    rest = JsonColumnarDecoder(pa.schema([SCHEMA.field("name"), SCHEMA.field("w")]))
    apart = UpsertDecoder(key, rest, ["id"], SCHEMA)
    for decoder, first in ((whole, 7), (apart, 1)):
        changes = decoder.decode_upserts(keys, values)
        assert [KINDS[kind] for kind in changes.kinds] == ["+U", "-D"]
        assert changes.batch.to_pylist() == [row(first, "a"), row(2, None)]
    with pytest.raises(MalformedMessageError, match=r"message 1 .*it has no key"):
        whole.decode_upserts([keys[0], None], values)
    with pytest.raises(MalformedMessageError, match=r"message 1 "):
        whole.decode_upserts(keys, [None, b"{"])
