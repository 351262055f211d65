"""A sink that writes into Kafka topics: at least once, or exactly once in transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flinkpy.common.typeinfo import Types
from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
from flinkpy.connectors.kafka.writing.kafka_writer import KafkaWriter, TransactionalKafkaWriter
from flinkpy.connectors.kafka.writing.producers import check_settings, settings_of
from flinkpy.connectors.kafka.writing.record_serialization import KafkaRecordSerializationSchema
from flinkpy.connectors.kafka.writing.security import Security
from flinkpy.connectors.kafka.writing.transaction_client import (
    COMMIT_S,
    TransactionClient,
    TransactionLostError,
)
from flinkpy.connectors.kafka.writing.transactional_ids import (
    TransactionalIds,
    Unfinished,
    begin_turn,
)
from flinkpy.connectors.kafka.writing.transactions import KafkaCommittable
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter
from flinkpy.state.descriptors import ListStateDescriptor

_LOG = engine_logger(__name__)
_UNFINISHED = ListStateDescriptor("kafka-transactions", Types.PICKLED_BYTE_ARRAY())


@dataclass(frozen=True)
class KafkaSinkOptions:
    """What a builder gathered. Without a prefix, transactional ids begin with the names of job and
    operator."""

    schema: KafkaRecordSerializationSchema
    properties: Mapping[str, str]
    guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    with_event_time: bool = True
    ignores_lost_transactions: bool = False

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE

    def prefix_in(self, context: OperatorContext) -> str:
        return (
            self.transactional_id_prefix
            or f"{context.task.job_name}-{context.uid or context.operator_id}"
        )


class KafkaSinkBase(Sink):
    """The writer and committer of Kafka sinks, whatever builds them."""

    def __init__(self, options: KafkaSinkOptions) -> None:
        self._options = options
        self._settings = settings_of(options.properties, transactional=options.is_exactly_once)
        if options.is_exactly_once:
            Security.of(self._settings)
        check_settings(self._settings)

    @property
    def takes_kinds(self) -> bool:  # type: ignore[override]
        """Whether messages say what the kinds of rows mean."""
        return self._options.schema.takes_kinds

    @property
    def owned(self) -> str | None:
        options = self._options
        if not options.is_exactly_once or options.transactional_id_prefix is None:
            return None
        return (
            f"the transactional id prefix {options.transactional_id_prefix!r} at "
            f"{self._settings['bootstrap.servers']}"
        )

    def check_stream(self, names: Sequence[str] | None, is_columnar: bool) -> None:
        self._options.schema.check_form(is_columnar)

    def create_committer(self, context: OperatorContext) -> Committer | None:
        if not self._options.is_exactly_once:
            return None
        return KafkaCommitter(
            TransactionClient(self._settings, context.clock, COMMIT_S),
            ignores_lost=self._options.ignores_lost_transactions,
        )

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        options = self._options
        if options.is_exactly_once:
            return self._transactional_writer(context)
        flushes = options.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
        return KafkaWriter(
            options.schema,
            self._settings,
            context,
            with_event_time=options.with_event_time,
            flushes=flushes,
        )

    def _transactional_writer(self, context: OperatorContext) -> SinkWriter:
        options, task, prefix = self._options, context.task, self._options.prefix_in(context)
        if not takes_checkpoints(context.configuration):
            _LOG.info(
                "%s: without checkpoints, transactions are committed when the input ends",
                context.name,
            )
        state = context.operator_state.get_union_list_state(_UNFINISHED)
        restored: list[Unfinished] = list(state.get())
        client = TransactionClient(self._settings, context.clock)
        try:
            turn = begin_turn(
                prefix,
                task.subtask_index,
                task.parallelism,
                restored,
                is_first=task.attempt_id.attempt == 0,
                abort=client.abort,
            )
        finally:
            client.close()
        ids = TransactionalIds(
            prefix,
            task.subtask_index,
            turn,
            {each for one in restored for each in one.transactional_ids},
        )
        return TransactionalKafkaWriter(
            options.schema,
            self._settings,
            context,
            ids,
            state,
            with_event_time=options.with_event_time,
        )

    def __repr__(self) -> str:
        topic = self._options.schema.topic
        return (
            f"{type(self).__name__}("
            f"{topic if isinstance(topic, str) else 'a topic for each record'}, "
            f"{self._options.guarantee.name})"
        )


class KafkaCommitter(Committer):
    """Commits with a transaction's own producer if it is in this process, otherwise in its name."""

    def __init__(self, client: TransactionClient, *, ignores_lost: bool = False) -> None:
        self._client, self._ignores_lost = client, ignores_lost

    def commit(self, committables: Sequence[KafkaCommittable]) -> None:
        for each in committables:
            if each.live is None or not each.live.commit():
                self._commit_in_its_name(each)
            if each.live is not None:
                each.live.was_committed()

    def _commit_in_its_name(self, committable: KafkaCommittable) -> None:
        try:
            self._client.commit(committable.transactional_id, committable.producer_id)
        except TransactionLostError as error:
            if not self._ignores_lost:
                raise
            _LOG.error("%s; the job goes on without them, as its sink says", error)

    def close(self) -> None:
        self._client.close()
