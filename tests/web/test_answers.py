"""What the routes answer, made from values: states that stand for many, times, aggregates,
secrets."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.actors.execution_graph_info import SubtaskInfo, VertexInfo
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.secrets.hidden_secrets import HIDDEN, shown_options
from flinkpy.scheduler.restart import SchedulerConfig
from flinkpy.web.answers import metric_answers
from flinkpy.web.answers.states import counts_by_state, span, state_of
from flinkpy.web.json_response import JSONResponse

E = ExecutionState


def vertex(*states: ExecutionState) -> VertexInfo:
    return VertexInfo(
        "v",
        "vertex",
        128,
        "default",
        (),
        (),
        tuple(SubtaskInfo(index, 0, state, {}) for index, state in enumerate(states)),
    )


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ((), E.CREATED),
        ((E.FINISHED, E.FINISHED), E.FINISHED),
        ((E.FINISHED, E.RUNNING), E.RUNNING),
        ((E.RUNNING, E.FAILED), E.FAILED),
        ((E.CANCELED, E.CANCELING), E.CANCELING),
        ((E.RUNNING, E.CANCELED), E.CANCELED),
        ((E.SCHEDULED, E.CREATED), E.SCHEDULED),
        ((E.RUNNING, E.DEPLOYING), E.RUNNING),
        ((E.CREATED, E.FINISHED), E.CREATED),
    ],
)
def test_one_state_stands_for_all_subtasks(
    states: tuple[ExecutionState, ...], together: ExecutionState
) -> None:
    assert state_of(vertex(*states).subtasks) is together
    assert state_of(vertex(*reversed(states)).subtasks) is together


@given(st.lists(st.sampled_from(list(ExecutionState))))
def test_subtasks_are_counted_by_state_and_together(states: list[ExecutionState]) -> None:
    counts = counts_by_state(states, with_total=True)
    assert counts.pop("total") == len(states) == sum(counts.values())
    assert {name.upper(): count for name, count in counts.items()} == counts_by_state(states)


def test_a_span_begins_with_the_first_deployment_and_ends_with_the_last_end() -> None:
    waiting = SubtaskInfo(0, 0, E.SCHEDULED, {E.CREATED: 1, E.SCHEDULED: 2})
    running = SubtaskInfo(1, 0, E.RUNNING, {E.CREATED: 1, E.DEPLOYING: 10, E.RUNNING: 12})
    ended = SubtaskInfo(
        2, 0, E.FINISHED, {E.CREATED: 1, E.DEPLOYING: 5, E.RUNNING: 7, E.FINISHED: 30}
    )
    assert span([waiting], 100) == {"start-time": -1, "end-time": -1, "duration": -1}
    assert span([waiting, running, ended], 100) == {"start-time": 5, "end-time": -1, "duration": 95}
    assert span([ended], 100) == {"start-time": 5, "end-time": 30, "duration": 25}
    assert span([], 100) == {"start-time": -1, "end-time": -1, "duration": -1}


def test_metrics_of_subtasks_are_put_together_as_asked() -> None:
    subtasks = tuple(
        SubtaskInfo(index, 0, E.RUNNING, {}, records_in=count) for index, count in enumerate((3, 9))
    )
    both = [metric_answers.of_subtask(each) for each in subtasks]
    assert metric_answers.aggregated(both, "numRecordsIn,nothing", None) == [
        {"id": "numRecordsIn", "min": 3, "max": 9, "sum": 12, "avg": 6, "skew": 50}
    ]
    assert metric_answers.aggregated(both, None, None)[0] == {"id": "numRecordsIn"}
    assert metric_answers.aggregated([], "numRecordsIn", None) == []
    with pytest.raises(ValueError, match="agg=median is not there"):
        metric_answers.aggregated(both, "numRecordsIn", "max,median")
    with pytest.raises(ValueError, match="agg=median is not there"):
        metric_answers.aggregated(both, None, "median")


@pytest.mark.parametrize(
    "odd", [math.nan, math.inf, -math.inf, pytest.param(10**400, id="beyond all floats")]
)
def test_what_is_no_number_in_json_has_no_aggregates(odd: float) -> None:
    both: list[dict[str, float | str]] = [
        {"odd": odd, "even": 1},
        {"odd": -odd, "even": 3},
        {"odd": 1, "even": 2},
    ]
    odd_ones, even_ones = metric_answers.aggregated(both, "odd,even", None)
    assert odd_ones == {
        "id": "odd",
        "min": None,
        "max": None,
        "sum": None,
        "avg": None,
        "skew": None,
    }
    assert even_ones["sum"] == 6


def test_text_that_utf_8_cannot_hold_is_told_with_signs_in_its_place() -> None:
    assert json.loads(bytes(JSONResponse({"name": "caf\udce9 ü"}).body)) == {"name": "caf? ü"}


def test_the_values_of_secrets_are_hidden_whatever_the_case_of_their_keys() -> None:
    configuration = {
        "a.Password": "x",
        "s3.secret-key": "x",
        "b.token": "x",
        "aws.Access-Key": "x",
        "parallelism.default": 4,
    }
    assert shown_options(configuration) == {
        **dict.fromkeys(sorted(configuration), HIDDEN),
        "parallelism.default": "4",
    }


@pytest.mark.finding("newcomers 11")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (timedelta(seconds=3), "3 s"),
        (timedelta(milliseconds=1500), "1500 ms"),
        (timedelta(minutes=2), "120 s"),
        (True, "true"),
        (4, "4"),
    ],
)
def test_values_are_shown_as_options_are_written(value: Any, shown: str) -> None:
    assert shown_options({"some.option": value}) == {"some.option": shown}


@pytest.mark.finding("newcomers 11")
@pytest.mark.parametrize(
    ("configuration", "says"),
    [
        ({}, "none: the first failure ends the job"),
        (
            {"execution.checkpointing.interval": "1 s"},
            "exponential-delay: after 1 s, then 1.5 times as long each time, up to 60 s",
        ),
        (
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "50 ms",
            },
            "fixed-delay: 3 restarts at most, each after 50 ms",
        ),
        (
            {"restart-strategy.type": "failurerate"},
            "failure-rate: unless more failures than 1 in 60 s, after 1 s",
        ),
    ],
)
def test_the_restart_strategy_in_force_is_named_with_what_it_does(
    configuration: dict[str, str], says: str
) -> None:
    assert SchedulerConfig.of(configuration).restart_in_words().startswith(says)
