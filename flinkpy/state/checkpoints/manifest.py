"""A checkpoint's manifest, ``_metadata``: one line of JSON that says what the checkpoint consists
of and where each piece is.

::

    {"format":"flinkpy checkpoint","version":1,"job_id":…,"checkpoint_id":…,"timestamp_ms":…,
     "state_size":…,"is_savepoint":true,
     "operators":[{"id":…,"name":…,"parallelism":…,"max_parallelism":…,
      "subtasks":{"0":{"keyed":…,"operator":…,"pieces":{"form":"rocksdb","of":{"000008.sst":…}}}},
      "coordinator":…,"finished":[…]}],
     "in_flight":[{"data_set":…,"producers":…,"consumers":…,"consumer":…,"input_index":…,
      "ship_strategy":…,"is_partial":false,"channels":[[producer,subpartition,is_input,…]]}],
     "crc32":"0badcafe"}

The checksum is of all bytes before ``,"crc32"``. It stands at the end in every version, so that a
manifest which is not intact is told from one that a later flinkpy has written. Small state stands
in the manifest, in base64. In the canonical form a subtask has ``"tables"``: for each state its
name, kind, type, rows and file."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.core.ids import IntermediateDataSetId, JobId, JobVertexId, OperatorId
from flinkpy.graph.checkpoints import (
    ChannelKey,
    ChannelState,
    CompletedCheckpoint,
    DataSetState,
    KeyedPieces,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
    StateTable,
)
from flinkpy.state.checkpoints.compression import ZSTD

FORMAT, VERSION = "flinkpy checkpoint", 1
_TAIL = b',"crc32":"%08x"}\n'
_TAIL_LENGTH = len(_TAIL % 0)


@dataclass(frozen=True)
class Manifest:
    """A checkpoint, and the job it is of. The checkpoint's location is where the manifest was
    found, so it does not stand in it. A savepoint is nobody's to delete but the user's."""

    job_id: JobId
    checkpoint: CompletedCheckpoint
    is_savepoint: bool = False

    def to_bytes(self) -> bytes:
        checkpoint = self.checkpoint
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "job_id": self.job_id,
            "checkpoint_id": checkpoint.checkpoint_id,
            "timestamp_ms": checkpoint.timestamp_ms,
            "state_size": checkpoint.size,
            **_given(is_savepoint=self.is_savepoint or None),
            "operators": [_operator_fields(*each) for each in sorted(checkpoint.operators.items())],
            **_given(
                in_flight=[_data_set_fields(*each) for each in sorted(checkpoint.in_flight.items())]
                or None
            ),
        }
        body = json.dumps(fields, separators=(",", ":")).encode()[:-1]  # without its closing brace
        return body + _TAIL % zlib.crc32(body)

    @staticmethod
    def from_bytes(written: bytes, file: str) -> Manifest:
        """What ``to_bytes`` made. CheckpointDamagedError if the bytes are others; ProgramError if
        they are of a version not known here."""
        body, tail = written[:-_TAIL_LENGTH], written[-_TAIL_LENGTH:]
        if tail != _TAIL % zlib.crc32(body):
            expected = f"a manifest with the checksum {zlib.crc32(body):08x} at its end"
            raise CheckpointDamagedError(
                file, expected, f"{len(written)} bytes that end with {bytes(tail)!r}"
            )
        try:
            fields = json.loads(body + b"}")
            form, version = fields["format"], fields["version"]
            if form == FORMAT and version != VERSION:
                raise ProgramError(
                    f"{file} is of version {version}, this flinkpy reads version {VERSION}: "
                    "use the flinkpy that wrote it"
                )
            return Manifest(
                fields["job_id"], _checkpoint(fields), fields.get("is_savepoint", False)
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            found = f"{type(error).__name__}: {error}"
            raise CheckpointDamagedError(file, "the manifest of a checkpoint", found) from error


def _operator_fields(operator_id: OperatorId, operator: OperatorCheckpoint) -> dict[str, Any]:
    subtasks = {
        str(index): _subtask_fields(state) for index, state in sorted(operator.subtasks.items())
    }
    return {
        "id": operator_id,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "subtasks": subtasks,
        **_given(
            coordinator=_handle_fields(operator.coordinator),
            finished=sorted(operator.finished) or None,
            uid=operator.uid,
            key_kind=operator.key_kind,
        ),
    }


def _subtask_fields(state: OperatorSubtaskState) -> dict[str, Any]:
    pieces = None
    if state.pieces is not None:
        of = {name: _handle_fields(handle) for name, handle in sorted(state.pieces.pieces.items())}
        pieces = {"form": state.pieces.form, "of": of}
    return _given(
        keyed=_handle_fields(state.keyed),
        operator=_handle_fields(state.operator),
        pieces=pieces,
        tables=[_table_fields(table) for table in state.tables] or None,
    )


def _table_fields(table: StateTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "keyed": table.keyed,
        "kind": table.kind,
        "type": table.type,
        "expires": table.expires,
        "rows": table.rows,
        **_given(file=_handle_fields(table.handle)),
    }


def _data_set_fields(data_set_id: IntermediateDataSetId, state: DataSetState) -> dict[str, Any]:
    channels = [
        [
            each.channel.producer,
            each.channel.subpartition,
            each.is_input,
            _handle_fields(each.handle),
        ]
        for each in state.channels
    ]
    return {
        "data_set": data_set_id,
        "producers": state.producers,
        "consumers": state.consumers,
        "consumer": state.consumer,
        "input_index": state.input_index,
        "ship_strategy": state.ship_strategy,
        **_given(is_partial=state.is_partial),
        "channels": channels,
    }


def _handle_fields(handle: StateHandle | None) -> dict[str, Any] | None:
    if handle is None:
        return None
    if handle.data is not None:
        return {
            "length": handle.length,
            "crc32": handle.checksum,
            "data": base64.b64encode(handle.data).decode(),
            **_given(codec=handle.codec),
        }
    return {
        "length": handle.length,
        "crc32": handle.checksum,
        "path": handle.path,
        "offset": handle.offset,
        **_given(codec=handle.codec),
    }


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _checkpoint(fields: Mapping[str, Any]) -> CompletedCheckpoint:
    if fields["format"] != FORMAT:
        raise ValueError(f"the format is {fields['format']!r:.80}")
    operators = {OperatorId(each["id"]): _operator(each) for each in fields["operators"]}
    in_flight = {
        IntermediateDataSetId(each["data_set"]): _data_set(each)
        for each in fields.get("in_flight", ())
    }
    return CompletedCheckpoint(
        fields["checkpoint_id"], fields["timestamp_ms"], operators, in_flight=in_flight
    )


def _data_set(fields: Mapping[str, Any]) -> DataSetState:
    channels = []
    for producer, subpartition, is_input, handle_fields in fields["channels"]:
        handle = _handle(handle_fields)
        if handle is None:
            raise ValueError("a channel has no state")
        channels.append(
            ChannelState(
                ChannelKey(IntermediateDataSetId(fields["data_set"]), producer, subpartition),
                is_input,
                handle,
            )
        )
    sizes, consumer = (fields["producers"], fields["consumers"]), JobVertexId(fields["consumer"])
    return DataSetState(
        *sizes,
        consumer,
        fields["input_index"],
        fields["ship_strategy"],
        tuple(channels),
        fields.get("is_partial"),
    )


def _operator(fields: Mapping[str, Any]) -> OperatorCheckpoint:
    subtasks = {int(index): _subtask(state) for index, state in fields["subtasks"].items()}
    coordinator = _handle(fields.get("coordinator"))
    finished = frozenset(map(int, fields.get("finished", ())))
    sizes = fields["parallelism"], fields["max_parallelism"]
    return OperatorCheckpoint(
        fields["name"],
        *sizes,
        subtasks,
        coordinator,
        finished,
        fields.get("uid"),
        fields.get("key_kind"),
    )


def _subtask(fields: Mapping[str, Any]) -> OperatorSubtaskState:
    pieces = fields.get("pieces")
    found = None
    if pieces is not None:
        found = KeyedPieces(
            pieces["form"], {name: _some_handle(handle) for name, handle in pieces["of"].items()}
        )
    return OperatorSubtaskState(
        _handle(fields.get("keyed")),
        _handle(fields.get("operator")),
        found,
        tuple(map(_table, fields.get("tables", ()))),
    )


def _table(fields: Mapping[str, Any]) -> StateTable:
    return StateTable(
        fields["name"],
        fields["keyed"],
        fields["kind"],
        fields["type"],
        fields["expires"],
        fields["rows"],
        _handle(fields.get("file")),
    )


def _handle(fields: Mapping[str, Any] | None) -> StateHandle | None:
    return None if fields is None else _some_handle(fields)


def _some_handle(fields: Mapping[str, Any]) -> StateHandle:
    if "data" in fields:
        return StateHandle(
            fields["length"],
            fields["crc32"],
            codec=_known_codec(fields),
            data=base64.b64decode(fields["data"], validate=True),
        )
    return StateHandle(
        fields["length"],
        fields["crc32"],
        path=fields["path"],
        offset=fields["offset"],
        codec=_known_codec(fields),
    )


def _known_codec(fields: Mapping[str, Any]) -> str | None:
    codec = fields.get("codec")
    if codec not in (None, ZSTD):
        raise ValueError(f"state is compressed with {codec!r:.40}")
    return codec
