"""The example of asynchronous I/O."""

from __future__ import annotations

from pathlib import Path

from examples import async_enrichment
from flinkpy.datastream import StreamExecutionEnvironment

PATIENCE_MS = 60_000  # on a busy machine a lookup may take long; none of these is lost


def test_every_order_gets_the_name_of_its_customer_in_order() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})
    with async_enrichment.enriched(env, 300, PATIENCE_MS).execute_and_collect() as found:
        assert list(found) == [
            (order, async_enrichment.CUSTOMERS[order % 7]) for order in range(300)
        ]


def test_two_subtasks_give_every_order_its_name_too() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(2)
    with async_enrichment.enriched(env, 300, PATIENCE_MS).execute_and_collect() as found:
        assert sorted(found) == [
            (order, async_enrichment.CUSTOMERS[order % 7]) for order in range(300)
        ]


def test_a_lookup_that_does_not_come_back_is_unknown() -> None:
    function = async_enrichment.Enrich()
    assert function.timeout((500, async_enrichment.LOST)) == [(500, "unknown")]


def test_the_example_fits_on_a_screen() -> None:
    assert len(Path(async_enrichment.__file__).read_text().splitlines()) < 80
