"""The events of Nexmark, the auction benchmark for stream processors: persons, auctions and bids,
in the ratio 1 : 3 : 46, generated as columns.

Every event is a function of its number and the seed alone; each random draw is a hash of both. So
any number of readers can generate the stream again from any position, and a test can compute the
expected results from the same events. The parameters are the published ones (Apache Beam's Nexmark
suite): a hundred auctions in flight, a thousand active persons, half of the bids on the one hot
auction, three out of four by the hot bidder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[np.int64]

PERSONS, AUCTIONS, BIDS = 1, 3, 46  # of every TOTAL events, in this order
TOTAL = PERSONS + AUCTIONS + BIDS
FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY, CATEGORIES = 1000, 1000, 10, 5
# all but one of this many draws choose the hot one
HOT_AUCTIONS = 2
HOT_BIDDERS = 4
HOT_SELLERS = 4
HOT_STEP = 100  # how many consecutive ids share one hot id
ACTIVE_PERSONS, AUCTIONS_IN_FLIGHT, LEAD = 1000, 100, 10
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
FIRST_NAMES = [
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
]
LAST_NAMES = [
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
]
CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
KINDS = ("person", "auction", "bid")


@dataclass(frozen=True)
class NexmarkGenerator:
    """Generates ``events`` events of all three kinds together (None: without end), with ``rate`` of
    them per second of event time, starting at ``first_timestamp`` (milliseconds). Raises
    ProgramError for a rate below 1 and a negative number of events.

    >>> generator = NexmarkGenerator(events=50)
    >>> (
    ...     generator.count("bid"),
    ...     generator.bids([0, 1])["auction"].tolist()
    ...     == generator.bids([0, 1])["auction"].tolist(),
    ... )
    (46, True)
    """

    events: int | None = None
    rate: int = 10_000
    seed: int = 1
    first_timestamp: int = 1_436_918_400_000  # 2015-07-15 00:00 UTC

    def __post_init__(self) -> None:
        if self.rate < 1 or (self.events is not None and self.events < 0):
            raise ProgramError(
                "Nexmark needs a rate from 1 on and no negative number of events, not "
                f"{self.rate} and {self.events}"
            )

    def source(self, kind: str, pace: float | None = None) -> DataGeneratorSource:
        """The source for one kind of event: ``"person"``, ``"auction"`` or ``"bid"``; it emits
        ``pace`` of them a second, or (None) as fast as they are consumed. Raises ProgramError for
        another kind.

        >>> bids = env.from_source(
        ...     NexmarkGenerator(events=100_000).source("bid"), strategy, "bids"
        ... )  # doctest: +SKIP
        """
        if kind not in KINDS:
            raise ProgramError(
                f"Nexmark has persons, auctions and bids; choose one of {KINDS}, not {kind!r}"
            )
        return DataGeneratorSource(
            {"person": self.persons, "auction": self.auctions, "bid": self.bids}[kind],
            self.count(kind),
            pace,
            columns=True,
        )

    def count(self, kind: str) -> int | None:
        """The number of events of that kind; None without end."""
        if self.events is None:
            return None
        full, rest = divmod(self.events, TOTAL)
        share, before = {
            "person": (PERSONS, 0),
            "auction": (AUCTIONS, PERSONS),
            "bid": (BIDS, PERSONS + AUCTIONS),
        }[kind]
        return full * share + min(max(rest - before, 0), share)

    # -- the three kinds, by their own numbers -----------------------------------------------------

    def persons(self, numbers: Any) -> dict[str, Any]:
        """The persons of these numbers, as columns: id, name, email, credit_card, city, state,
        date_time."""
        numbers = _array(numbers)
        event = numbers * TOTAL
        first, last = self._draw(event, 1, len(FIRST_NAMES)), self._draw(event, 2, len(LAST_NAMES))
        names = [
            f"{FIRST_NAMES[one]} {LAST_NAMES[two]}"
            for one, two in zip(first.tolist(), last.tolist())
        ]
        return {
            "id": numbers + FIRST_PERSON,
            "name": names,
            "email": [f"{name.replace(' ', '.').lower()}@example.com" for name in names],
            "credit_card": [
                (
                    f"{card // 10**12:04d} {card // 10**8 % 10**4:04d} "
                    f"{card // 10**4 % 10**4:04d} {card % 10**4:04d}"
                )
                for card in self._draw(event, 3, 10**16).tolist()
            ],
            "city": _chosen(CITIES, self._draw(event, 4, len(CITIES))),
            "state": _chosen(STATES, self._draw(event, 5, len(STATES))),
            "date_time": self._time(event),
        }

    def auctions(self, numbers: Any) -> dict[str, Any]:
        """The auctions of these numbers, as columns: id, item_name, initial_bid, reserve,
        date_time, expires, seller, category."""
        import numpy as np
        import pyarrow as pa

        numbers = _array(numbers)
        event = numbers // AUCTIONS * TOTAL + PERSONS + numbers % AUCTIONS
        begin, initial = self._milliseconds(event), self._price(event, 1)
        horizon = self._milliseconds(event + AUCTIONS_IN_FLIGHT * TOTAL // AUCTIONS) - begin
        length = 1 + self._draw(event, 2, np.maximum(horizon * 2, 1))
        hot = self._draw(event, 3, HOT_SELLERS) > 0
        seller = (
            np.where(hot, _last_person(event) // HOT_STEP * HOT_STEP, self._some_person(event, 4))
            + FIRST_PERSON
        )
        return {
            "id": numbers + FIRST_AUCTION,
            "item_name": [f"item {number}" for number in numbers.tolist()],
            "initial_bid": initial,
            "reserve": initial + self._price(event, 5),
            "date_time": self._time(event),
            "expires": pa.array(begin + length, pa.timestamp("ms")),
            "seller": seller,
            "category": FIRST_CATEGORY + self._draw(event, 6, CATEGORIES),
        }

    def bids(self, numbers: Any) -> dict[str, Any]:
        """auction, bidder, price, channel, date_time."""
        import numpy as np

        numbers = _array(numbers)
        event = numbers // BIDS * TOTAL + PERSONS + AUCTIONS + numbers % BIDS
        hot_auction = self._draw(event, 1, HOT_AUCTIONS) > 0
        auction = (
            np.where(
                hot_auction,
                _last_auction(event) // HOT_STEP * HOT_STEP,
                self._some_auction(event, 2),
            )
            + FIRST_AUCTION
        )
        hot_bidder = self._draw(event, 3, HOT_BIDDERS) > 0
        bidder = (
            np.where(
                hot_bidder,
                _last_person(event) // HOT_STEP * HOT_STEP + 1,
                self._some_person(event, 4),
            )
            + FIRST_PERSON
        )
        return {
            "auction": auction,
            "bidder": bidder,
            "price": self._price(event, 5),
            "channel": _chosen(CHANNELS, self._draw(event, 6, len(CHANNELS))),
            "date_time": self._time(event),
        }

    # -- what they are made of ---------------------------------------------------------------------

    def _milliseconds(self, event: Numbers) -> Numbers:
        return self.first_timestamp + event * 1000 // self.rate

    def _time(self, event: Numbers) -> Any:
        import pyarrow as pa

        return pa.array(self._milliseconds(event), pa.timestamp("ms"))

    def _draw(self, event: Numbers, draw: int, below: object) -> Numbers:
        """Numbers from 0 up to but not including ``below``: the splitmix64 hash of event, draw and
        seed."""
        import numpy as np

        mixed = (event.astype(np.uint64) * np.uint64(16) + np.uint64(draw)) * np.uint64(
            0x9E3779B97F4A7C15
        ) + np.uint64(self.seed)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        drawn: Numbers = ((mixed ^ (mixed >> np.uint64(31))) % np.asarray(below, np.uint64)).astype(
            np.int64
        )
        return drawn

    def _price(self, event: Numbers, draw: int) -> Numbers:
        """Prices in cents, from 100 to 10⁸; each power of ten is equally frequent."""
        import numpy as np

        price: Numbers = np.rint(
            10 ** (self._draw(event, draw, 1 << 52) / (1 << 52) * 6) * 100
        ).astype(np.int64)
        return price

    def _some_person(self, event: Numbers, draw: int) -> Numbers:
        """A person who is active, or about to come."""
        import numpy as np

        known = _last_person(event) + 1
        active = np.minimum(known, ACTIVE_PERSONS)
        return known - active + self._draw(event, draw, active + LEAD)

    def _some_auction(self, event: Numbers, draw: int) -> Numbers:
        """An auction that is in flight, or about to come."""
        import numpy as np

        last = _last_auction(event)
        first = np.maximum(last - AUCTIONS_IN_FLIGHT, 0)
        return first + self._draw(event, draw, last - first + 1 + LEAD)


def _array(numbers: Any) -> Numbers:
    import numpy as np

    return np.asarray(numbers, dtype=np.int64)


def _last_person(event: Numbers) -> Numbers:
    """The number of the last person at or before an event."""
    return event // TOTAL


def _last_auction(event: Numbers) -> Numbers:
    """The number of the last auction at or before an event; 0 before the first."""
    import numpy as np

    epoch, offset = event // TOTAL, event % TOTAL
    return np.maximum(
        np.where(
            offset < PERSONS,
            epoch * AUCTIONS - 1,
            epoch * AUCTIONS + np.minimum(offset - PERSONS, AUCTIONS - 1),
        ),
        0,
    )


def _chosen(texts: list[str], at: Numbers) -> Any:
    import pyarrow as pa

    return pa.array(texts).take(pa.array(at))
