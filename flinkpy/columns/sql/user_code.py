"""The port for functions of the program within expressions of SQL: a Calc opens them, and calls
them once a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkpy.columns.sql.call_site import CallSite, Kernel


class UserCode(Protocol):
    """A scalar function of the program. ``open`` comes before any call, ``close`` after the last;
    ``context`` is whatever the operator gives to functions."""

    def open(self, context: object) -> None: ...

    def close(self) -> None: ...

    def kernel(self, site: CallSite) -> Kernel:
        """The function for this call: a whole batch at once. It raises FailingValue."""


class FailingValue(Exception):
    """A function of the program failed, or gave what its type does not allow. ``position`` is that
    of the row in the batch; of a function of whole batches it is not known."""

    def __init__(self, cause: Exception, position: int | None = None) -> None:
        super().__init__(str(cause))
        self.cause, self.position = cause, position
