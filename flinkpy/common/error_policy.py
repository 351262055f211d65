"""What happens to a record whose function raises: the job fails, the function is called again, or
the record goes to a side output as a dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.errors import UserFrame
from flinkpy.core.program.program_line import refuse
from flinkpy.core.users_values import bounded_repr

MOST_RETRIES = 1000


@dataclass(frozen=True)
class DeadLetter:
    """A record whose function raised, with the exception and where it was raised. Records of the
    side output that an ``ErrorPolicy.divert`` names are of this class.

    - ``record``: the record as the operator got it. Of a window's function: a ``FailedWindow``;
    - ``exception``: the name of the exception's class, such as ``"ZeroDivisionError"``;
      ``message``: its text;
    - ``frames``: the lines of your code in the traceback, outermost first; each has ``file``,
      ``line``, ``function`` and ``text``;
    - ``operator`` and ``uid``: name and uid of the operator; ``subtask``: its number, counted from
      0;
    - ``timestamp``: the record's event time in milliseconds, or None;
    - ``calls``: how often the function was called with the record; ``input``: 1, or 2 for the
      second of two connected streams.

    >>> letter = DeadLetter((1, 0), "ZeroDivisionError", "division by zero", (), "Map", None, 0)
    >>> print(letter)
    ZeroDivisionError: division by zero
      in operator 'Map', subtask 0
      on record (1, 0)
    """

    record: Any
    exception: str
    message: str
    frames: tuple[UserFrame, ...]
    operator: str
    uid: str | None
    subtask: int
    timestamp: int | None = None
    calls: int = 1
    input: int = 1

    def __str__(self) -> str:
        text = f"{self.exception}: {self.message}" if self.message else self.exception
        uid = f" (uid {self.uid})" if self.uid else ""
        where = f"  in operator {self.operator!r}{uid}, subtask {self.subtask}"
        return "\n".join(
            [text, *map(str, self.frames), where, f"  on record {bounded_repr(self.record)}"]
        )


@dataclass(frozen=True)
class FailedWindow:
    """The ``record`` of a dead letter of a window's function: the key (None without keys), the
    window, and what the function was given.

    >>> from flinkpy.datastream.window import TimeWindow
    >>> FailedWindow("roof", TimeWindow(0, 10), [("roof", 4.0)])
    FailedWindow(key='roof', window=TimeWindow(start=0, end=10), elements=[('roof', 4.0)])
    """

    key: Any
    window: Any
    elements: list[Any]


@dataclass(frozen=True)
class ErrorPolicy:
    """What an operator does with a record whose function raises; given to ``stream.on_error``.

    ``retries``: how often the function is called again with the record, at once. ``tag``: the side
    output that the record goes to after that, as a :class:`DeadLetter`; None: the job fails, as it
    does without a policy.

    >>> ErrorPolicy.divert(OutputTag("failed"), retries=2)
    ErrorPolicy(retries=2, tag=OutputTag('failed'))
    """

    retries: int = 0
    tag: OutputTag | None = None

    def __post_init__(self) -> None:
        if (
            isinstance(self.retries, bool)
            or not isinstance(self.retries, int)
            or not 0 <= self.retries <= MOST_RETRIES
        ):
            raise refuse(
                f"retries is a number from 0 to {MOST_RETRIES}, this is {self.retries!r:.80}"
            )
        if self.tag is not None and not isinstance(self.tag, OutputTag):
            raise refuse(f"divert() takes an OutputTag, this is {self.tag!r:.80}")
        if self.tag is not None and self.tag.type_info is not None:
            raise refuse(
                f"divert(): what goes to {self.tag!r} are DeadLetter objects, so leave its type out"
            )

    @staticmethod
    def fail() -> ErrorPolicy:
        """The job fails (and restarts, if its restart strategy says so). This is what happens
        without a policy.

        >>> ErrorPolicy.fail()
        ErrorPolicy(retries=0, tag=None)
        """
        return ErrorPolicy()

    @staticmethod
    def retry(retries: int) -> ErrorPolicy:
        """The function is called again with the record, at most so many times; then the job fails.
        Raises ProgramError for a number below 1.

        >>> ErrorPolicy.retry(3)
        ErrorPolicy(retries=3, tag=None)
        """
        if retries == 0:
            raise refuse(
                "retry() takes a number of at least 1; without retries it is ErrorPolicy.fail()"
            )
        return ErrorPolicy(retries)

    @staticmethod
    def divert(tag: OutputTag, retries: int = 0) -> ErrorPolicy:
        """The record goes to the side output ``tag`` as a :class:`DeadLetter`, after so many
        retries. Raises ProgramError for a tag with a type.

        >>> ErrorPolicy.divert(OutputTag("failed"))
        ErrorPolicy(retries=0, tag=OutputTag('failed'))
        """
        if tag is None:
            raise refuse("divert() takes an OutputTag: the side output for the dead letters")
        return ErrorPolicy(retries, tag)

    @property
    def fails_at_once(self) -> bool:
        """Whether it changes nothing."""
        return not self.retries and self.tag is None
