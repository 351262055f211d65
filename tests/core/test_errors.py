from __future__ import annotations

import inspect
import pickle

import pytest

from flinkpy.core import errors
from flinkpy.core.errors import (
    CheckpointDamagedError,
    FlinkpyError,
    JobExecutionError,
    UserCodeError,
    UserFrame,
)

KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, FlinkpyError)
]


WITH_PARTS = (CheckpointDamagedError, JobExecutionError, UserCodeError)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in WITH_PARTS], ids=lambda kind: kind.__name__
)
def test_every_error_crosses_processes_with_its_message(kind: type[FlinkpyError]) -> None:
    back = pickle.loads(pickle.dumps(kind("what to change")))
    assert type(back) is kind
    assert "what to change" in str(back)


def test_a_users_error_shows_frame_operator_and_record() -> None:
    error = UserCodeError(
        "ZeroDivisionError: division by zero",
        operator="Map",
        uid="m",
        subtask="Map (1/2)#0",
        record="(1, 0)",
        origin="input.csv at 12",
        frames=(UserFrame("job.py", 7, "<lambda>", "ds.map(lambda r: r[0] / r[1])"),),
    )
    back = pickle.loads(pickle.dumps(JobExecutionError("my job", error)))
    text = str(back)
    for part in (
        "my job",
        "ZeroDivisionError",
        'File "job.py", line 7',
        "lambda r: r[0] / r[1]",
        "'Map'",
        "(1, 0)",
        "input.csv at 12",
    ):
        assert part in text
