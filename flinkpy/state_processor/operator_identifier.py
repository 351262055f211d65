"""Which operator of a savepoint: by the uid that the program gave it, or by its id."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.hashes import digest

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class OperatorIdentifier:
    """An operator. Where one is asked for, a text is taken as its uid.

    >>> OperatorIdentifier.for_uid("counts") == OperatorIdentifier.of("counts")
    True
    """

    operator_id: OperatorId
    name: str  # for messages, and for an operator that is new
    uid: str | None = None

    @staticmethod
    def for_uid(uid: str) -> OperatorIdentifier:
        """The operator with this ``uid``."""
        if not isinstance(uid, str) or not uid:
            raise ProgramError(f"an operator's uid is a text, this is {uid!r:.80}")
        return OperatorIdentifier(OperatorId(digest("uid", uid)), uid, uid)

    @staticmethod
    def for_uid_hash(uid_hash: str) -> OperatorIdentifier:
        """The operator with this id, which ``flinkpy checkpoints inspect`` shows: for operators
        without a uid. ProgramError if it is none."""
        if not isinstance(uid_hash, str) or not _ID.fullmatch(uid_hash):
            raise ProgramError(
                "an operator's id has 32 hexadecimal digits in lower case, this is "
                f"{uid_hash!r:.80}"
            )
        return OperatorIdentifier(OperatorId(uid_hash), uid_hash)

    @staticmethod
    def of(operator: str | OperatorIdentifier) -> OperatorIdentifier:
        """An identifier, or that of a uid."""
        return (
            operator
            if isinstance(operator, OperatorIdentifier)
            else OperatorIdentifier.for_uid(operator)
        )
