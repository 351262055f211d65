"""The name of a side output."""

from __future__ import annotations

from typing import Any, ClassVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.program.program_line import refuse


class OutputTag:
    """The name of a side output: a process function sends to it with ``yield tag, value``, and
    ``get_side_output(tag)`` reads it.

    Tags with the same id are the same side output, whatever their types.

    >>> OutputTag("late")
    OutputTag('late')
    """

    # whether this process has made a tag; if not, results need not be searched for them
    exists: ClassVar[bool] = False

    def __new__(cls, *arguments: Any, **named: Any) -> OutputTag:
        """Notes that a tag exists, whether it was created, copied or unpickled."""
        OutputTag.exists = True
        return super().__new__(cls)

    def __init__(self, tag_id: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise refuse(
                f"the id of an OutputTag is text that is not empty, this is {tag_id!r:.80}"
            )
        if type_info is not None and not isinstance(type_info, TypeInformation):
            raise refuse(f"the type of an OutputTag is one of Types, this is {type_info!r:.80}")
        self.tag_id, self.type_info = tag_id, type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
