"""The examples of batch mode, operator state, metrics and testing. What they are to give was worked
out by hand."""

from __future__ import annotations

import pytest

from examples import batch_mode, metrics, operator_state, testing_a_function
from flinkpy.common import Types
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.testing import OneInputHarness


def environment(parallelism: int) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)


SUMS = {
    RuntimeExecutionMode.STREAMING: [
        ("east", 5),
        ("north", 20),
        ("north", 60),
        ("north", 70),
        ("south", 15),
        ("south", 45),
    ],
    RuntimeExecutionMode.BATCH: [("east", 5), ("north", 70), ("south", 45)],
}
SUMS[RuntimeExecutionMode.AUTOMATIC] = SUMS[RuntimeExecutionMode.BATCH]


@pytest.mark.parametrize("mode", SUMS)
def test_a_stream_tells_every_sum_and_a_batch_the_last_of_each_shop(
    mode: RuntimeExecutionMode,
) -> None:
    env = environment(1).set_runtime_mode(mode)
    with batch_mode.sums(env).execute_and_collect() as sums:
        assert sorted(sums) == SUMS[mode]


def test_a_batch_gives_the_same_in_two_subtasks() -> None:
    env = environment(2).set_runtime_mode(RuntimeExecutionMode.BATCH)
    with batch_mode.sums(env).execute_and_collect() as sums:
        assert sorted(sums) == SUMS[RuntimeExecutionMode.BATCH]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_four_words_are_written_at_once(parallelism: int) -> None:
    env = environment(parallelism)
    with (
        env.from_collection(["drop"] * 8, Types.STRING())
        .map(operator_state.Bulk(), Types.STRING())
        .execute_and_collect() as lines
    ):
        assert sorted(lines) == [""] * 6 + ["drop drop drop drop"] * 2


def test_words_not_written_yet_survive_and_are_shared_out() -> None:
    with OneInputHarness(operator_state.Bulk()) as harness:
        harness.push_all(["a", "b", "c", "d", "e", "f"])
        assert harness.output == ["", "", "", "a b c d", "", ""]
        saved = harness.snapshot()
    with (
        harness.restore(saved, parallelism=2, subtask_index=0) as first,
        harness.restore(saved, parallelism=2, subtask_index=1) as second,
    ):
        for restored in (first, second):
            restored.push_all(["x", "y", "z"])
            assert restored.output[:2] == ["", ""]
        assert sorted([first.output[2], second.output[2]]) == ["e x y z", "f x y z"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_bad_lines_are_counted_and_numbers_measured(parallelism: int) -> None:
    result = metrics.count(environment(parallelism))
    found = result.get_metrics()
    assert sum(found[f"Parse.{subtask}.bad lines"] for subtask in range(parallelism)) == 3
    assert sum(found[f"Parse.{subtask}.sizes"]["count"] for subtask in range(parallelism)) == 4
    assert max(found[f"Parse.{subtask}.sizes"]["max"] or 0 for subtask in range(parallelism)) == 12
    assert result.get_accumulator_result("shortest bad line").line == ""


@pytest.mark.parametrize(
    "test", [name for name in dir(testing_a_function) if name.startswith("test_")]
)
def test_the_example_of_tests_passes(test: str) -> None:
    getattr(testing_a_function, test)()
