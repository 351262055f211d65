"""The properties of a Kafka client: programs give them under the names of Kafka's Java client, as
for Flink; librdkafka has most of them under the same name.

Only the functions that need it import confluent-kafka, so that programs without Kafka do without
it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.extras import imported, needs

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

MISSING_PACKAGE = needs("Kafka", "kafka")
# What Java needs and librdkafka does not: classes of the JVM, and how many records a poll gives
_WITHOUT_MEANING = frozenset(
    {
        "key.deserializer",
        "value.deserializer",
        "key.serializer",
        "value.serializer",
        "interceptor.classes",
        "metric.reporters",
        "max.poll.records",
        "register.consumer.metrics",
        "sasl.jaas.config",
        "default.api.timeout.ms",
    }
)
# What librdkafka calls by another name
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
_KEY_STORES = ("ssl.truststore.", "ssl.keystore.")
_JAAS_FIELD = re.compile(
    r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^\s;"\']+))'
)


def require_client() -> None:
    """Raises ProgramError if confluent-kafka is not installed."""
    imported("confluent_kafka", "kafka", "Kafka")


def checked_property(key: object, value: object) -> str:
    """The value as text, as properties are. Raises ProgramError for anything but texts, numbers and
    booleans."""
    if not isinstance(key, str) or not key:
        raise ProgramError(
            f"the name of a Kafka property is a text such as 'isolation.level', this is {key!r:.80}"
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise ProgramError(f"the Kafka property {key} is a text, this is {value!r:.80}")
    return str(value)


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties as librdkafka knows them. Raises ProgramError for those that only Java can
    follow."""
    stores = [key for key in properties if key.startswith(_KEY_STORES)]
    if stores:
        raise ProgramError(
            f"the Kafka property {stores[0]} names a key store of Java: give the certificates "
            "as PEM files, with ssl.ca.location, "
            "ssl.certificate.location and ssl.key.location"
        )
    translated: dict[str, Any] = {
        _RENAMED.get(key, key): value
        for key, value in properties.items()
        if key not in _WITHOUT_MEANING
    }
    if translated.get("ssl.endpoint.identification.algorithm") == "":
        translated["ssl.endpoint.identification.algorithm"] = "none"
    if translated.get("auto.offset.reset") == "none":
        translated["auto.offset.reset"] = "error"
    jaas = properties.get("sasl.jaas.config")
    if jaas is not None:
        translated = {**_credentials(jaas), **translated}
    return translated


def _credentials(jaas: str) -> dict[str, str]:
    """User and password of ``sasl.jaas.config``, in which Java's client has them."""
    found = {
        name: re.sub(r"\\(.)", r"\1", quoted) or single or plain
        for name, quoted, single, plain in _JAAS_FIELD.findall(jaas)
    }
    if ("PlainLoginModule" not in jaas and "ScramLoginModule" not in jaas) or len(found) < 2:
        raise ProgramError(
            "the Kafka property sasl.jaas.config names a login module of Java other than "
            "PlainLoginModule and ScramLoginModule, or "
            "no username and password: set sasl.username and "
            "sasl.password, or librdkafka's properties for Kerberos and "
            "OAuth"
        )
    return {f"sasl.{name}": text for name, text in found.items()}


def check_consumer_properties(properties: Mapping[str, str]) -> None:
    """Raises ProgramError for a property that librdkafka does not know, or with a value that it
    does not take. Connects to nothing."""
    require_client()
    from confluent_kafka import Consumer, KafkaException

    def check(settings: Mapping[str, Any]) -> None:
        Consumer({"group.id": "flinkpy", **settings, "log_level": 0}).close()

    config = {
        key: value
        for key, value in for_librdkafka(properties).items()
        if key != "bootstrap.servers"
    }
    try:
        check(config)
    except KafkaException as error:
        raise refused_settings(error, config, check, "source") from None


def refused_settings(
    error: KafkaException,
    settings: Mapping[str, Any],
    check: Callable[[Mapping[str, Any]], object],
    whose: str,
) -> ProgramError:
    """What librdkafka says of the settings, as a sentence. It names a number's property, perhaps by
    another name, and not what is there instead: so each setting is checked alone then."""
    from confluent_kafka import KafkaException

    said = error.args[0].str().strip().rstrip(".")
    for key, value in settings.items() if said.startswith("Invalid value for") else ():
        try:
            check({key: value})
        except KafkaException as alone:
            if alone.args[0].str().strip().rstrip(".") == said:
                said = f"{key} is a number, this is {value!r:.80}"
                break
    return ProgramError(
        f"Kafka's client refuses the {whose}'s properties: {said}; librdkafka's list of them "
        "is CONFIGURATION.md in its repository"
    )


@contextmanager
def making_a_client() -> Iterator[None]:
    """Around it, in a worker. Raises ProgramError for settings that were right where the program
    was built and are not here, as a file that is not there."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise ProgramError(
            "Kafka's client cannot be made in this worker: "
            f"{error.args[0].str().rstrip('.')}; files that properties name must be on "
            "all machines of the cluster"
        ) from None


# -- errors as sentences ---------------------------------------------------------------------------


def is_refusal(error: KafkaError) -> bool:
    """Whether asking again cannot help: the broker refuses who asks, or what is asked."""
    from confluent_kafka import KafkaError

    return error.fatal() or error.code() in (
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
        KafkaError.INVALID_GROUP_ID,
    )


def is_unreadable(error: KafkaError) -> bool:
    """Whether the client could not read what the broker gave, and went on behind it: those records
    would be missing."""
    from confluent_kafka import KafkaError

    return error.code() in (
        KafkaError._BAD_MSG,
        KafkaError._BAD_COMPRESSION,
        KafkaError._NOT_IMPLEMENTED,
    )


def refusal(error: KafkaError, servers: str, place: str = "") -> ProgramError:
    """The error as a sentence that names what to change; ``place``: the topic, partition and
    offset."""
    from confluent_kafka import KafkaError

    code, said = error.code(), error.str().rstrip(".")
    if code in (
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    ):
        return ProgramError(
            f"Kafka at {servers} refuses the credentials ({said}): check the properties "
            "security.protocol, sasl.mechanism, "
            "sasl.username and sasl.password"
        )
    if code == KafkaError._SSL:
        return ProgramError(
            f"no TLS connection to Kafka at {servers} ({said}): check the properties "
            "security.protocol and ssl.ca.location"
        )
    if code in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ):
        return ProgramError(
            f"Kafka at {servers} does not let this user read {place or 'there'} ({said}): "
            "give it the rights, or name another user"
        )
    if code in (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_EXCEPTION,
    ):
        return ProgramError(
            f"Kafka at {servers} has no {place or 'such topic'} ({said}): create it, or name "
            "another one"
        )
    if is_unreadable(error):
        return ProgramError(
            f"what Kafka at {servers} has at {place} cannot be read ({said}): nothing of it "
            "was passed over; if it is broken there, "
            "begin behind it"
        )
    if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION):
        return ProgramError(
            f"Kafka at {servers} does not have {place} any more, or not yet ({said}): begin "
            "elsewhere, or say with a "
            "KafkaOffsetResetStrategy, EARLIEST or LATEST, where to go on"
        )
    return ProgramError(f"Kafka at {servers}: {said}{f' ({place})' if place else ''}")
