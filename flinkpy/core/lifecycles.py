"""All lifecycles of the engine as tables of allowed moves. A state changes only through a
:class:`StateMachine`.

``Lifecycle.mermaid`` generates the diagrams in docs/ARCHITECTURE.md from these tables; tests are
generated from them too."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from flinkpy.core.errors import IllegalTransitionError

S = TypeVar("S", bound=Enum)


class JobState(Enum):
    """The states of a job (PyFlink's JobStatus)."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"


class ExecutionState(Enum):
    """The states of one execution attempt; the Task on the worker has the same ones."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"


class MailboxState(Enum):
    """OPEN takes mail; QUIESCED refuses new mail but still hands out what it has; CLOSED answers
    everything with an error."""

    OPEN = "OPEN"
    QUIESCED = "QUIESCED"
    CLOSED = "CLOSED"


class EndpointState(Enum):
    """The states of an RpcEndpoint, driven by the control messages START, STOP and TERMINATE."""

    CREATED = "CREATED"
    STARTED = "STARTED"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"


class TaskSlotState(Enum):
    """The states of an allocated slot of a TaskExecutor; an unallocated slot has no entry."""

    ALLOCATED = "ALLOCATED"  # promised to a job, not yet accepted by its JobMaster
    ACTIVE = "ACTIVE"  # accepted, may run tasks
    RELEASING = "RELEASING"  # waits for its last task to end


class CheckpointState(Enum):
    """The states of one checkpoint at the coordinator."""

    PENDING = "PENDING"  # waits for acknowledgements
    STORING = "STORING"  # waits for its manifest
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


class ConnectionState(Enum):
    """The states of a data connection. A peer that does not prove that it knows the secret never
    makes one OPEN."""

    CONNECTING = "CONNECTING"
    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Lifecycle(Generic[S]):
    """A named table of allowed moves."""

    def __init__(self, name: str, initial: S, moves: Mapping[S, tuple[S, ...]]) -> None:
        self.name = name
        self.initial = initial
        self.moves = moves

    def allows(self, current: S, target: S) -> bool:
        return target in self.moves.get(current, ())

    def is_terminal(self, state: S) -> bool:
        return not self.moves.get(state)

    def mermaid(self) -> str:
        """The table as a mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.name}"]
        lines += [
            f"    {source.name} --> {target.name}"
            for source, targets in self.moves.items()
            for target in targets
        ]
        lines += [
            f"    {state.name} --> [*]"
            for state in type(self.initial)
            if self._reached(state) and self.is_terminal(state)
        ]
        return "\n".join(lines)

    def _reached(self, state: S) -> bool:
        return any(state in targets for targets in self.moves.values())


class StateMachine(Generic[S]):
    """The current state of one thing. A move that is not allowed raises an error that lists the
    moves before it.

    >>> machine = StateMachine(MAILBOX, "mailbox of task 3")
    >>> machine.move(MailboxState.QUIESCED)
    >>> machine.state.name
    'QUIESCED'
    """

    HISTORY = 16

    __slots__ = ("_history", "is_terminal", "lifecycle", "owner", "state")

    def __init__(self, lifecycle: Lifecycle[S], owner: str) -> None:
        self.lifecycle, self.owner = lifecycle, owner
        self.state: S = lifecycle.initial
        # stored, because tasks look at it before every step
        self.is_terminal = lifecycle.is_terminal(self.state)
        self._history: deque[str] = deque(maxlen=self.HISTORY)

    def move(self, target: S, why: str = "") -> None:
        if not self.lifecycle.allows(self.state, target):
            story = "; ".join(self._history) or "nothing before"
            raise IllegalTransitionError(
                (
                    f"{self.owner}: {self.lifecycle.name} cannot go from {self.state.name} to "
                    f"{target.name}"
                )
                + (f" ({why})" if why else "")
                + f"; before that: {story}"
            )
        self._history.append(f"{self.state.name}→{target.name}" + (f" ({why})" if why else ""))
        self.state = target
        self.is_terminal = self.lifecycle.is_terminal(target)

    def try_move(self, target: S, why: str = "") -> bool:
        """Moves if the table allows it, and says whether it did."""
        if not self.lifecycle.allows(self.state, target):
            return False
        self.move(target, why)
        return True

    def __repr__(self) -> str:
        return f"<{self.owner}: {self.state.name}>"


_J = JobState
_E = ExecutionState
_M = MailboxState
_P = EndpointState
_T = TaskSlotState
_C = CheckpointState

JOB: Lifecycle[JobState] = Lifecycle(
    "job",
    _J.INITIALIZING,
    {
        _J.INITIALIZING: (_J.CREATED, _J.FAILED, _J.CANCELLING, _J.CANCELED, _J.SUSPENDED),
        _J.CREATED: (_J.RUNNING, _J.FAILING, _J.FAILED, _J.CANCELLING, _J.CANCELED, _J.SUSPENDED),
        _J.RUNNING: (_J.FINISHED, _J.FAILING, _J.CANCELLING, _J.RESTARTING, _J.SUSPENDED),
        _J.RESTARTING: (_J.RUNNING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED),
        _J.FAILING: (_J.FAILED, _J.SUSPENDED),
        _J.CANCELLING: (_J.CANCELED, _J.FAILED, _J.SUSPENDED),
        _J.FINISHED: (),
        _J.CANCELED: (),
        _J.FAILED: (),
        _J.SUSPENDED: (),
    },
)

EXECUTION: Lifecycle[ExecutionState] = Lifecycle(
    "execution",
    _E.CREATED,
    {
        _E.CREATED: (_E.SCHEDULED, _E.CANCELED, _E.FAILED),
        _E.SCHEDULED: (_E.DEPLOYING, _E.CANCELED, _E.FAILED),
        _E.DEPLOYING: (_E.INITIALIZING, _E.RUNNING, _E.FINISHED, _E.CANCELING, _E.FAILED),
        _E.INITIALIZING: (_E.RUNNING, _E.CANCELING, _E.FAILED),
        _E.RUNNING: (_E.FINISHED, _E.CANCELING, _E.FAILED),
        _E.CANCELING: (_E.CANCELED, _E.FAILED, _E.FINISHED),
        _E.FINISHED: (),
        _E.CANCELED: (),
        _E.FAILED: (),
    },
)

TASK: Lifecycle[ExecutionState] = Lifecycle(
    "task",
    _E.CREATED,
    {
        _E.CREATED: (_E.DEPLOYING, _E.CANCELED, _E.FAILED),
        _E.DEPLOYING: (_E.INITIALIZING, _E.CANCELING, _E.FAILED),
        _E.INITIALIZING: (_E.RUNNING, _E.CANCELING, _E.FAILED),
        _E.RUNNING: (_E.FINISHED, _E.CANCELING, _E.FAILED),
        _E.CANCELING: (_E.CANCELED, _E.FAILED),
        _E.FINISHED: (),
        _E.CANCELED: (),
        _E.FAILED: (),
    },
)

MAILBOX: Lifecycle[MailboxState] = Lifecycle(
    "mailbox",
    _M.OPEN,
    {_M.OPEN: (_M.QUIESCED, _M.CLOSED), _M.QUIESCED: (_M.CLOSED,), _M.CLOSED: ()},
)

ENDPOINT: Lifecycle[EndpointState] = Lifecycle(
    "endpoint",
    _P.CREATED,
    {
        _P.CREATED: (_P.STARTED, _P.TERMINATED),
        _P.STARTED: (_P.STOPPING, _P.TERMINATED),
        _P.STOPPING: (_P.TERMINATED,),
        _P.TERMINATED: (),
    },
)

TASK_SLOT: Lifecycle[TaskSlotState] = Lifecycle(
    "task slot",
    _T.ALLOCATED,
    {
        _T.ALLOCATED: (_T.ACTIVE, _T.RELEASING),
        _T.ACTIVE: (_T.ALLOCATED, _T.RELEASING),
        _T.RELEASING: (),
    },
)

CHECKPOINT: Lifecycle[CheckpointState] = Lifecycle(
    "checkpoint",
    _C.PENDING,
    {
        _C.PENDING: (_C.STORING, _C.ABORTED),
        _C.STORING: (_C.COMPLETED, _C.ABORTED),
        _C.COMPLETED: (),
        _C.ABORTED: (),
    },
)

_N = ConnectionState

CONNECTION: Lifecycle[ConnectionState] = Lifecycle(
    "connection",
    _N.CONNECTING,
    {_N.CONNECTING: (_N.OPEN, _N.CLOSED), _N.OPEN: (_N.CLOSED,), _N.CLOSED: ()},
)
