"""Writes savepoints that no job has taken: new ones, or existing ones with operators exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import SavepointFormatType
from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import IdFactory, JobId, OperatorId
from flinkpy.core.keys import DEFAULT_MAX_PARALLELISM_BOUND, MAX_PARALLELISM_LIMIT
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint
from flinkpy.state.canonical.canonical_writer import Place
from flinkpy.state.canonical.rewriting import (
    copied_operator,
    savepoint_writer,
    store_savepoint,
    write_state,
)
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.inspection.checkpoint_contents import manifest_at
from flinkpy.state_processor.bootstrap_transformation import StateBootstrapTransformation
from flinkpy.state_processor.operator_identifier import OperatorIdentifier

# writes state as that of the operator with this id
Write = Callable[[OperatorId, FileStore, str, SavepointFormatType], OperatorCheckpoint]


class SavepointWriter:
    """A savepoint in the making. Its methods give it back, so calls can be chained; nothing is
    written before ``write``.

    >>> from flinkpy.state_processor import KeyedStateBootstrapFunction, OperatorTransformation
    >>> writer = SavepointWriter.new_savepoint(max_parallelism=128)
    >>> state = (
    ...     OperatorTransformation.bootstrap_with(history).key_by("user").transform(Totals())
    ... )  # doctest: +SKIP
    >>> writer.with_operator("totals", state).write(
    ...     "/data/savepoints/from-history"
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        manifest: Manifest,
        max_parallelism: int,
        parallelism: int,
        kept: dict[OperatorId, Write],
        reader: StateReader | None = None,
    ) -> None:
        if not 0 < parallelism <= max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise ProgramError(
                f"a savepoint of parallelism {parallelism} and max parallelism "
                f"{max_parallelism} cannot be: the first is at least 1 "
                f"and at most the second, which is at most {MAX_PARALLELISM_LIMIT}"
            )
        self._manifest = manifest
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._operators, self._reader = kept, reader

    @staticmethod
    def new_savepoint(
        max_parallelism: int = DEFAULT_MAX_PARALLELISM_BOUND, parallelism: int = 1
    ) -> SavepointWriter:
        """An empty one. ``max_parallelism`` is the number of key groups, and must be that of the
        job; any parallelism of the job will do, and ``parallelism`` only says in how many parts
        state is written."""
        checkpoint = CompletedCheckpoint(1, SYSTEM_CLOCK.time_ms(), {})
        return SavepointWriter(
            Manifest(JobId(IdFactory().hex(32)), checkpoint), max_parallelism, parallelism, {}
        )

    @staticmethod
    def from_existing_savepoint(
        path: str, max_parallelism: int | None = None, parallelism: int = 1
    ) -> SavepointWriter:
        """One that begins with the operators of this savepoint or checkpoint, which stays as it is.
        They are copied as they are, in the form that they have; so are the records that an
        unaligned checkpoint has caught in flight. ``max_parallelism`` is for operators that are
        added, by default that of the others."""
        manifest = manifest_at(str(path))
        location, operators = str(manifest.checkpoint.location), manifest.checkpoint.operators
        reader = StateReader(file_store_of(location), location)
        kept: dict[OperatorId, Write] = {
            operator_id: partial(_copy, operator, reader)
            for operator_id, operator in operators.items()
        }
        found = max(
            (operator.max_parallelism for operator in operators.values()),
            default=DEFAULT_MAX_PARALLELISM_BOUND,
        )
        return SavepointWriter(manifest, max_parallelism or found, parallelism, kept, reader)

    def with_operator(
        self, operator: str | OperatorIdentifier, transformation: StateBootstrapTransformation
    ) -> SavepointWriter:
        """Adds the state of an operator. ProgramError if the savepoint has some of it."""
        wanted = OperatorIdentifier.of(operator)
        if not isinstance(transformation, StateBootstrapTransformation):
            raise ProgramError(
                f"with_operator() takes what transform() gave, this is {transformation!r:.80}"
            )
        if wanted.operator_id in self._operators:
            raise ProgramError(
                f"the savepoint has state of the operator {wanted.name!r} already: call "
                f"remove_operator({wanted.name!r}) before"
            )
        self._operators[wanted.operator_id] = partial(
            _made, wanted, transformation, self._max_parallelism, self._parallelism
        )
        return self

    def remove_operator(self, operator: str | OperatorIdentifier) -> SavepointWriter:
        """Leaves out the state of an operator. ProgramError if there is none."""
        self._taken_out(operator)
        return self

    def change_operator_identifier(
        self, old: str | OperatorIdentifier, new: str | OperatorIdentifier
    ) -> SavepointWriter:
        """Gives the state of an operator to another one. ProgramError if there is none of the
        first, or some of the second."""
        wanted = OperatorIdentifier.of(new)
        if wanted.operator_id in self._operators:
            raise ProgramError(
                f"the savepoint has state of the operator {wanted.name!r} already: remove it first"
            )
        self._operators[wanted.operator_id] = partial(_renamed, wanted.uid, self._taken_out(old))
        return self

    def _taken_out(self, operator: str | OperatorIdentifier) -> Write:
        wanted = OperatorIdentifier.of(operator)
        if wanted.operator_id not in self._operators:
            raise ProgramError(f"the savepoint has no state of the operator {wanted.name!r}")
        return self._operators.pop(wanted.operator_id)

    def write(
        self, path: str, format_type: SavepointFormatType = SavepointFormatType.CANONICAL
    ) -> str:
        """Runs the transformations and writes the savepoint to this folder, or URL, which is new or
        empty; gives its location. Bootstrapped state is written in this form. If anything fails,
        nothing stays."""
        target = absolute(str(path))
        store = file_store_of(target)
        store_savepoint(
            self._manifest,
            target,
            store,
            (
                (operator_id, write(operator_id, store, target, format_type))
                for operator_id, write in self._operators.items()
            ),
            self._reader,
        )
        return target


def _made(
    identifier: OperatorIdentifier,
    transformation: StateBootstrapTransformation,
    max_parallelism: int,
    parallelism: int,
    operator_id: OperatorId,
    store: FileStore,
    target: str,
    format_type: SavepointFormatType,
) -> OperatorCheckpoint:
    subtasks = {}
    for subtask, frozen in enumerate(transformation.make(max_parallelism, parallelism)):
        if not frozen.is_empty:
            with savepoint_writer(store, target, operator_id, str(subtask)) as writer:
                subtasks[subtask] = write_state(
                    writer, Place(operator_id, identifier.name, f"{subtask}-0"), frozen, format_type
                )
    return OperatorCheckpoint(
        identifier.name, parallelism, max_parallelism, subtasks, uid=identifier.uid
    )


def _renamed(
    uid: str | None,
    write: Write,
    operator_id: OperatorId,
    store: FileStore,
    target: str,
    format_type: SavepointFormatType,
) -> OperatorCheckpoint:
    return replace(write(operator_id, store, target, format_type), uid=uid)


def _copy(
    operator: OperatorCheckpoint,
    reader: StateReader,
    operator_id: OperatorId,
    store: FileStore,
    target: str,
    format_type: SavepointFormatType,
) -> OperatorCheckpoint:
    return copied_operator(operator_id, operator, reader, store, target)
