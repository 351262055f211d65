"""Messages as bytes, for those that leave the process.

cloudpickle, because operator events and splits may be of classes that only the user's program has.
The bytes are made here and not by the transport: so a request that cannot be pickled fails where it
is sent, and an answer that cannot becomes an error that the caller sees."""

from __future__ import annotations

import pickle
from typing import cast

from flinkpy.actors.rpc.delivery.envelope import Handshake, Message, RpcAnswer, RpcInvocation
from flinkpy.actors.rpc.delivery.portable_errors import (
    portable,
    remote_traceback_of,
    with_remote_traceback,
)
from flinkpy.core.errors import FlinkpyError, RpcError
from flinkpy.core.program.program_pickler import dumps_any


def pack(message: Message) -> bytes:
    """Returns the message as bytes. Raises RpcError for a request that does not pickle; an answer
    that does not becomes one with an error."""
    try:
        return dumps_any(message)
    except Exception as error:  # whatever a foreign __reduce__ raises
        refused = RpcError(
            f"{describe(message)} cannot be sent to another process: {type(error).__name__}: "
            f"{error}"
        )
        if isinstance(message, RpcAnswer):
            return pack(make_answer(message.request_id, None, refused))
        raise refused from error


def unpack(data: bytes) -> Message:
    """Opens what :func:`pack` made; an answer's error has its remote traceback again."""
    message = cast(Message, pickle.loads(data))
    if isinstance(message, RpcAnswer) and isinstance(message.error, FlinkpyError):
        with_remote_traceback(message.error, message.remote_traceback)
    return message


def make_answer(request_id: int, value: object, error: BaseException | None) -> RpcAnswer:
    if error is None:
        return RpcAnswer(request_id, value)
    error = portable(error)
    return RpcAnswer(request_id, None, error, remote_traceback_of(error))


def describe(message: Message) -> str:
    """Describes the message in a word or two, for errors and traces."""
    if isinstance(message, RpcInvocation):
        return f"{message.endpoint}.{message.method}"
    if isinstance(message, Handshake):
        return f"handshake with {message.endpoint}"
    return f"answer {message.request_id}"
