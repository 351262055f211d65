"""The Nexmark generator: proportions, references, time, and that a record depends on its number
alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.memory.nexmark import FIRST_AUCTION, FIRST_PERSON, KINDS, NexmarkGenerator
from flinkpy.core.errors import ProgramError


@given(st.integers(0, 100_000))
def test_the_kinds_share_all_events_one_to_three_to_forty_six(events: int) -> None:
    generator = NexmarkGenerator(events=events)
    counts = [generator.count(kind) or 0 for kind in KINDS]
    assert sum(counts) == events
    if events % 50 == 0:
        assert counts == [events // 50, events * 3 // 50, events * 46 // 50]


@given(
    st.lists(st.integers(0, 1_000_000), min_size=1, max_size=20),
    st.sampled_from(KINDS),
    st.integers(0, 3),
)
def test_an_event_is_the_same_alone_and_in_any_company(
    numbers: list[int], kind: str, seed: int
) -> None:
    make = {
        "person": NexmarkGenerator.persons,
        "auction": NexmarkGenerator.auctions,
        "bid": NexmarkGenerator.bids,
    }[kind]
    generator = NexmarkGenerator(seed=seed)
    together = make(generator, numbers)
    for position, number in enumerate(numbers):
        alone = make(generator, [number])
        assert {name: _plain(column, 0) for name, column in alone.items()} == {
            name: _plain(column, position) for name, column in together.items()
        }


def _plain(column: object, position: int) -> object:
    value = column[position]  # type: ignore[index]
    return value.as_py() if hasattr(value, "as_py") else value


def test_half_of_the_bids_go_to_the_hot_auction_and_most_come_from_the_hot_bidder() -> None:
    bids = NexmarkGenerator().bids(np.arange(460_000, 560_000))
    assert 0.49 < np.mean(bids["auction"] % 100 == 0) < 0.53
    assert 0.74 < np.mean(bids["bidder"] % 100 == 1) < 0.77


def test_bids_and_auctions_refer_to_what_exists_or_is_about_to() -> None:
    generator = NexmarkGenerator()
    numbers = np.arange(200_000)
    bids, auctions = generator.bids(numbers), generator.auctions(numbers[:10_000])
    assert np.all(bids["auction"] - FIRST_AUCTION <= numbers // 46 * 3 + 3 + 10)
    assert np.all(bids["bidder"] - FIRST_PERSON <= numbers // 46 + 1 + 10)
    assert np.all(auctions["seller"] - FIRST_PERSON <= numbers[:10_000] // 3 + 1 + 10)
    assert np.all(auctions["id"] == np.arange(FIRST_AUCTION, FIRST_AUCTION + 10_000))


def test_time_goes_by_the_number_of_the_event_and_the_rate() -> None:
    generator = NexmarkGenerator(rate=1000, first_timestamp=0)
    assert generator.persons([0, 1, 20])["date_time"].cast("int64").to_pylist() == [0, 50, 1000]
    assert generator.bids([0, 45, 46])["date_time"].cast("int64").to_pylist() == [4, 49, 54]
    expires = generator.auctions([5])["expires"].cast("int64").to_pylist()[0]
    assert 53 < expires <= 53 + 1 + 2 * 1666


def test_prices_are_spread_over_six_powers_of_ten() -> None:
    prices = np.sort(NexmarkGenerator().bids(np.arange(100_000))["price"])
    assert prices[0] >= 100
    assert prices[-1] <= 100_000_000
    assert 80_000 < prices[50_000] < 120_000


def test_odd_wishes_are_refused() -> None:
    with pytest.raises(ProgramError, match="rate"):
        NexmarkGenerator(rate=0)
    with pytest.raises(ProgramError, match="persons, auctions and bids"):
        NexmarkGenerator().source("offer")
