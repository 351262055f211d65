"""Streams at a prompt and in a notebook: look into them, watch their jobs, cancel them; mistakes
are told by the cell and its line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.common import Row, Types
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.lifecycles import JobState
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.streams.recorded_program import leading_to
from tests.cluster.programs import Endless

# -- take and show, in this process ----------------------------------------------------------------


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "parallelism.default": 1}
    )


def test_take_gives_the_first_records_and_cancels_the_rest(env: StreamExecutionEnvironment) -> None:
    assert env.from_source(Endless(), None, "endless").map(lambda n: n * n).take(3) == [0, 1, 4]
    assert submitted_jobs()[-1].status() is JobState.CANCELED


def test_take_gives_fewer_where_the_stream_ends_before(env: StreamExecutionEnvironment) -> None:
    assert env.from_collection([1, 2]).take() == [1, 2]
    assert submitted_jobs()[-1].status() is JobState.FINISHED


def test_take_of_nothing_runs_nothing(env: StreamExecutionEnvironment) -> None:
    before = submitted_jobs()
    assert env.from_collection([1, 2]).take(0) == []
    assert submitted_jobs() == before


def test_a_stream_can_be_looked_into_again_and_goes_on_to_its_sinks(
    env: StreamExecutionEnvironment,
) -> None:
    doubled = env.from_collection([1, 2, 3]).map(lambda n: n * 2)
    assert doubled.take(2) == doubled.take(2) == [2, 4]
    assert list(doubled.map(lambda n: n + 1).execute_and_collect()) == [3, 5, 7]


def test_sinks_beside_it_wait_for_execute(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    numbers = env.from_collection([1, 2])
    numbers.add_sink(lambda n: (tmp_path / f"{n}").touch())
    assert numbers.map(lambda n: -n).take(2) == [-1, -2]
    assert list(tmp_path.iterdir()) == []
    env.execute()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_what_leads_to_a_stream_is_all_it_needs_and_nothing_else(
    env: StreamExecutionEnvironment,
) -> None:
    left, right = env.from_collection([1]), env.from_collection([2])
    joined = left.map(lambda n: n).union(right)
    beside = right.map(lambda n: n)
    needed = leading_to([joined.recorded.transformation])
    assert {left.recorded.transformation, right.recorded.transformation} <= needed
    assert beside.recorded.transformation not in needed


def test_a_loop_can_be_looked_into(env: StreamExecutionEnvironment) -> None:
    loop = env.from_collection([3]).iterate()
    stepped = loop.map(lambda n: n - 1)
    loop.close_with(stepped.filter(lambda n: n > 0))
    assert stepped.take(5) == [2, 1, 0]


def test_a_failing_function_fails_take_with_the_records_place(
    env: StreamExecutionEnvironment,
) -> None:
    with pytest.raises(
        JobExecutionError, match=r"(?s)job 'take\(2\)' failed: ZeroDivisionError.*on record 0"
    ):
        env.from_collection([1, 0]).map(lambda n: 1 // n).take(2)


def shown(
    env: StreamExecutionEnvironment,
    capsys: pytest.CaptureFixture[str],
    stream: Any,
    *arguments: Any,
    **named: Any,
) -> list[str]:
    stream.show(*arguments, **named)
    return capsys.readouterr().out.splitlines()


def test_show_has_a_column_for_each_field(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = env.from_collection(
        [Row("to", 2), Row("be", None)],
        Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()]),
    )
    assert shown(env, capsys, rows) == [
        "+------+-------+",
        "| word | count |",
        "+------+-------+",
        "| to   |     2 |",
        "| be   |  null |",
        "+------+-------+",
    ]


def test_show_says_when_there_may_be_more(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = env.from_collection(range(5))
    assert shown(env, capsys, numbers, 2)[-1] == "the first 2 records"
    assert shown(env, capsys, numbers, 1)[-1] == "the first 1 record"
    assert "first" not in shown(env, capsys, numbers, 6)[-1]


def test_show_cuts_long_values_unless_told_not_to(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    long = env.from_collection(["x" * 30])
    assert "x" * 19 + "…" in shown(env, capsys, long)[3]
    assert "x" * 4 + "…" in shown(env, capsys, long, truncate=5)[3]
    assert "x" * 30 in shown(env, capsys, long, truncate=False)[3]


def test_show_of_no_records_has_the_columns(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    none = env.from_collection([Row(1)], Types.ROW_NAMED(["n"], [Types.INT()])).filter(
        lambda row: False
    )
    assert shown(env, capsys, none)[1] == "| n |"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.take(-1), r"take\(\) takes a number of records from 0 on, this is -1"),
        (lambda s: s.take("3"), r"take\(\) takes a number of records"),
        (lambda s: s.take(True), r"take\(\) takes a number of records"),
        (lambda s: s.show(-1), r"show\(\) takes a number of records"),
        (lambda s: s.show(truncate=0), "truncate is True, False or a number of characters"),
    ],
)
def test_a_mistake_in_a_look_is_refused_with_the_line(
    env: StreamExecutionEnvironment, call: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=r"test_interactive\.py:\d+: .*" + message):
        call(env.from_collection([1]))


def test_functions_cannot_use_what_belongs_to_the_program(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1])
    with pytest.raises(
        ProgramError,
        match=r"function <lambda> \(.*\) uses numbers \(DataStream\), which belongs to the program",
    ):
        numbers.map(lambda n: numbers.take(1)).take(1)
    with pytest.raises(
        ProgramError,
        match=(
            r"uses env \(StreamExecutionEnvironment\), which belongs to the program: functions "
            r"run on the workers"
        ),
    ):
        numbers.map(lambda n: env.from_collection([n])).take(1)


# -- a notebook ------------------------------------------------------------------------------------

NOTEBOOK = {
    "set up": """\
import itertools, threading
from dataclasses import dataclass
from flinkpy.cluster.launch import submitted_jobs
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def splits(self, parallelism):
        return list(range(parallelism))
    def read(self, split, position):
        return itertools.count(position)

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(Endless(), None, "endless")""",
    "function": "factor = 2\ndef scaled(n):\n    return n * factor",
    "show": (
        "env.from_collection([('to', 1), ('be', 20)]).map(lambda word: (word[0], "
        "scaled(word[1]))).show()"
    ),
    "take": "numbers.map(scaled).take(3)",
    "changed": "factor = 5\nnumbers.map(scaled).take(3)",
    "class": """\
@dataclass
class Point:
    x: int
    y: int
points = env.from_collection([1, 2, 3, 4]).rebalance().map(lambda n: Point(n, -n)).set_parallelism(2).take(4)
all(type(point) is Point for point in points), sorted(point.x for point in points)""",
    "careless": "def careless(n):\n    left = n - 2\n    return 1 / left",
    "failing": "ones = env.from_collection([1, 2])\n\nones.map(careless).show()",
    "mistake": "ones = env.from_collection([1, 2])\nones.map(3)",
    "unpicklable": (
        "lock = threading.Lock()\ndef guarded(n):\n    with lock:\n        return "
        "n\nones.map(guarded).take(1)"
    ),
    "started": (
        "numbers.filter(lambda n: n < 0).print()\nclient = env.execute_async('in the "
        "background')\nclient"
    ),
    "moving": "while 'out 0/s' in (drawn := str(client)):\n    pass\nprint(drawn)",
    "cancel": "client.cancel().result()\nclient.get_job_execution_result().result()",
    "cancelled": "client",
    "interrupted": "numbers.filter(lambda n: n < 0).print()\nenv.execute('interrupt me')",
    "iterated": """\
for n in numbers.filter(lambda n: n < 3).execute_and_collect('iterated'):
    if n == 2:
        print('interrupt me', flush=True)""",
    "of iterated": "submitted_jobs()[-1].result()",
    "worked on": """\
results = numbers.execute_and_collect('worked on')
for n in results:
    if n == 3:
        print('interrupt me', flush=True)
    while n == 3:
        pass""",
    "of worked on": "submitted_jobs()[-1].result()",
    "left early": "for n in numbers.execute_and_collect('left'):\n    if n == 3:\n        break\nn",
    "left": "submitted_jobs()[-1].result()",
    "after": "numbers.take(2)",
    "jobs": "{job.status().name for job in submitted_jobs()}",
}
IN = {name: f"Cell In[{number}]" for number, name in enumerate(NOTEBOOK, 1)}


CLUSTERS = [
    pytest.param("embedded", marks=pytest.mark.xdist_group("notebook")),
    pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.wide]),
]


@pytest.fixture(scope="module", params=CLUSTERS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The notebook, run once on each kind of cluster: what every cell showed."""
    pytest.importorskip(
        "nbclient",
        reason="notebooks are run with nbclient and ipykernel: pip install 'flinkpy[notebook]'",
    )
    pytest.importorskip(
        "ipykernel",
        reason="notebooks are run with nbclient and ipykernel: pip install 'flinkpy[notebook]'",
    )
    from tests.datastream.notebook import run_notebook

    folder = tmp_path_factory.mktemp("notebook")
    environment = {
        **os.environ,
        "FLINKPY_PARALLELISM_DEFAULT": "1",
        "IPYTHONDIR": str(folder / "ipython"),
    }
    if request.param == "embedded":
        yield run_notebook(
            NOTEBOOK, folder, {**environment, "FLINKPY_EXECUTION_TARGET": "embedded"}
        )
        return
    address = request.getfixturevalue("ray").address
    yield run_notebook(
        NOTEBOOK,
        folder,
        {**environment, "FLINKPY_EXECUTION_TARGET": "ray-session", "FLINKPY_RAY_ADDRESS": address},
    )


def test_a_notebook_shows_what_functions_of_its_cells_make(ran: Any) -> None:
    assert ran["set up"].error == ""
    assert ran["show"].printed.splitlines() == [
        "+----+----+",
        "| f0 | f1 |",
        "+----+----+",
        "| to |  2 |",
        "| be | 40 |",
        "+----+----+",
    ]


def test_a_notebook_takes_from_an_endless_stream(ran: Any) -> None:
    assert ran["take"].text == "[0, 2, 4]"


def test_a_name_bound_anew_counts_for_the_next_job(ran: Any) -> None:
    assert ran["changed"].text == "[0, 5, 10]"


def test_records_of_a_class_of_the_notebook_come_back_as_that_class(ran: Any) -> None:
    assert ran["class"].text == "(True, [1, 2, 3, 4])"


def test_a_failing_function_is_a_short_error_with_both_cells_and_their_lines(ran: Any) -> None:
    assert ran["failing"].error.splitlines()[:5] == [
        f"  {IN['failing']}, line 3",
        "    ones.map(careless).show()",
        "JobExecutionError: job 'show(20)' failed: ZeroDivisionError: division by zero",
        f"  {IN['careless']}, line 3, in careless",
        "    return 1 / left",
    ]
    assert "on record 2" in ran["failing"].error
    assert "flinkpy/" not in ran["failing"].error
    assert len(ran["failing"].error.splitlines()) <= 8


def test_a_mistake_is_one_line_of_the_cell_and_one_message(ran: Any) -> None:
    assert ran["mistake"].error.splitlines() == [
        f"  {IN['mistake']}, line 2",
        "    ones.map(3)",
        "ProgramError: map() takes a function, a lambda or a MapFunction; 3 is a int",
    ]


def test_a_function_that_cannot_travel_is_named_with_what_it_captures_and_what_to_do(
    ran: Any,
) -> None:
    where, _, message = ran["unpicklable"].error.splitlines()
    assert where == f"  {IN['unpicklable']}, line 5"
    assert message.endswith(
        f"its function guarded ({IN['unpicklable']}, line 2) uses lock (_thread.lock), which "
        "cannot be pickled. "
        "Make it in open() of a function class, so that every worker "
        "has its own"
    )


def test_a_job_shows_its_state_as_text_and_as_a_graph(ran: Any) -> None:
    started = ran["started"].result
    assert re.match(
        (
            r"in the background · (RUNNING|CREATED) · \d s · [0-9a-f]{32}\n  Source: endless -> "
            r"Filter -> Sink: Print to Std\. Out  1 "
        ),
        started["text/plain"],
    )
    assert "<svg" in started["text/html"]
    assert "endless -&gt; Filter" in started["text/html"]


def test_a_running_job_shows_its_throughput(ran: Any) -> None:
    assert re.search(
        r"1 RUNNING  in 0/s  out (\d\.?){1,5} [kM]?/s  total [1-9]", ran["moving"].printed
    )


def test_a_cancelled_job_says_so(ran: Any) -> None:
    assert ran["cancel"].error.splitlines() == [
        f"  {IN['cancel']}, line 2",
        "    client.get_job_execution_result().result()",
        "JobCancelledError: job 'in the background' was cancelled",
    ]
    assert "· CANCELED ·" in ran["cancelled"].text


def test_a_job_somebody_waits_for_draws_its_progress_over_itself_and_leaves_nothing(
    ran: Any,
) -> None:
    first, *_, last = ran["interrupted"].live
    assert first["text/plain"].startswith("interrupt me · RUNNING · ")
    assert "<svg" in first["text/html"]
    assert last == {"text/plain": "", "text/html": ""}


def test_the_stop_button_cancels_the_job_that_is_waited_for(ran: Any) -> None:
    assert ran["interrupted"].error.splitlines() == [
        f"  {IN['interrupted']}, line 2",
        "    env.execute('interrupt me')",
        "KeyboardInterrupt: job 'interrupt me' was cancelled",
    ]


@pytest.mark.parametrize("name", ["iterated", "worked on"])
def test_the_stop_button_cancels_the_job_that_is_iterated_while_it_waits_and_in_the_loops_body(
    ran: Any, name: str
) -> None:
    assert "KeyboardInterrupt" in ran[name].error
    assert f"JobCancelledError: job '{name}' was cancelled" in ran[f"of {name}"].error


def test_a_loop_that_is_left_early_cancels_its_job(ran: Any) -> None:
    assert ran["left early"].text == "3"
    assert "JobCancelledError: job 'left' was cancelled" in ran["left"].error


def test_no_job_is_left_behind_and_the_next_one_runs(ran: Any) -> None:
    assert ran["after"].text == "[0, 1]"
    assert set(re.findall(r"\w+", ran["jobs"].text)) == {"CANCELED", "FAILED", "FINISHED"}
