"""Makes dead letters of exceptions, and counts them."""

from __future__ import annotations

import re
from dataclasses import replace

from flinkpy.common.error_policy import DeadLetter, ErrorPolicy
from flinkpy.core.codegen.idle_results import IdleResultError
from flinkpy.core.errors import UserCodeError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.user_errors import is_of_function, user_code_error

DIVERTED = "numRecordsDiverted"

_CLASS = re.compile(r"\w+")  # the error's text begins with the name of its class


class Letters:
    """The dead letters of one operator. ``policy`` says where they go."""

    def __init__(self, policy: ErrorPolicy, context: OperatorContext) -> None:
        self._tag = policy.tag
        self._context = context
        self._brief = replace(context, explains_errors=False)
        self.side_output = "" if policy.tag is None else policy.tag.tag_id

    def letter(
        self,
        error: BaseException,
        record: object,
        timestamp: int | None,
        *,
        calls: int = 1,
        input_number: int = 1,
    ) -> DeadLetter:
        """The letter for a record whose last call raised ``error``, counted. Raises the error if
        the policy says so, and if it is not one of the user's function but of the program or the
        engine."""
        cause = (
            error.__cause__
            if isinstance(error, UserCodeError) and error.__cause__ is not None
            else error
        )
        if self._tag is None or not is_users(error):
            told = user_code_error(cause, self._context, record)
            raise told from (None if told is cause else cause)
        told = (
            error
            if isinstance(error, UserCodeError)
            else user_code_error(error, self._brief, record)
        )
        assert isinstance(told, UserCodeError), "is_users says so"
        self.count(1)
        kind = _CLASS.match(told.cause)
        name = kind.group() if kind else type(error).__name__
        text = told.cause[len(name) :]
        # behind the comma stands that the error cannot give its text
        message = text[2:] if text.startswith((": ", ", ")) else text
        context = self._context
        return DeadLetter(
            record,
            name,
            message,
            told.frames,
            context.name,
            context.uid,
            context.task.subtask_index,
            timestamp,
            calls,
            input_number,
        )

    def count(self, number: int) -> None:
        """Counts letters; the metric exists from the first one on."""
        RuntimeContext(self._context).get_metrics_group().counter(DIVERTED).inc(number)


def is_users(error: BaseException) -> bool:
    """Whether the error is an Exception of the user's function, and not of the program or the
    engine."""
    if isinstance(error, UserCodeError):
        cause = error.__cause__
        return isinstance(cause, Exception | None) and not isinstance(cause, IdleResultError)
    return (
        isinstance(error, Exception)
        and is_of_function(error)
        and not isinstance(error, IdleResultError)
    )
