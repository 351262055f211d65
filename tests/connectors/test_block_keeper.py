"""The keeper of blocks without Ray's actors: how long a set stays, and which blocks count."""

from __future__ import annotations

import pytest

pytest.importorskip("ray")

from flinkpy.connectors.ray.block_keeper import BlockKeeper, BlockUpdates  # imports ray


def keeper_with_a_set() -> BlockKeeper:
    keeper = BlockKeeper()
    keeper.create_set("set", ["first", "second"])
    return keeper


def test_a_set_is_dropped_when_neither_the_program_nor_a_job_needs_it() -> None:
    keeper = keeper_with_a_set()
    keeper.job_started("set")
    keeper.forget_set("set")
    assert keeper.set_names() == ["set"]
    keeper.job_ended("set")
    assert keeper.set_names() == []
    with pytest.raises(LookupError, match="the stream that stood for the blocks is gone"):
        keeper.block("set", 0)


def test_a_set_that_no_job_has_read_stays_for_the_job_on_its_way() -> None:
    keeper = keeper_with_a_set()
    keeper.forget_set("set")
    assert keeper.block("set", 1) == ["second"]


def test_a_set_stays_for_the_program_after_its_job() -> None:
    keeper = keeper_with_a_set()
    keeper.job_started("set")
    keeper.job_ended("set")
    assert keeper.set_names() == ["set"]


def test_missing_blocks_are_reported_with_the_reason() -> None:
    keeper = keeper_with_a_set()
    assert keeper.updates("set", 0) == BlockUpdates()
    keeper.fail_missing("set", "the well has run dry")
    assert keeper.updates("set", 0) == BlockUpdates((), "the well has run dry")
