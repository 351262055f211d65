"""``nexmark``: the events of the auction benchmark as tables. A table with the columns
``event_type``, ``person``, ``auction`` and ``bid`` has all events, as in Nexmark's own programs; a
table with the option ``kind`` has those of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError, did_you_mean
from flinkpy.table.factories.connector_factory import ConnectorFactory, stored_columns
from flinkpy.table.factories.table_options import INT, LONG, TableOption, TableValues, one_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from flinkpy.connectors.memory.nexmark import NexmarkGenerator
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import TableScan

# Nexmark's names in SQL, and those of the generator
_NAMES = {
    "emailAddress": "email",
    "creditCard": "credit_card",
    "dateTime": "date_time",
    "itemName": "item_name",
    "initialBid": "initial_bid",
}
COLUMNS = {
    "person": ["id", "name", "emailAddress", "creditCard", "city", "state", "dateTime", "extra"],
    "auction": ["id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires"]
    + ["seller", "category", "extra"],
    "bid": ["auction", "bidder", "price", "channel", "url", "dateTime", "extra"],
}
_EVENTS = ["event_type", "person", "auction", "bid"]


class NexmarkFactory(ConnectorFactory):
    """Generates Nexmark's events; each is a function of its number."""

    identifier = "nexmark"
    writes = False
    options = (
        TableOption("kind", one_of("person", "auction", "bid"), None, "Only events of this kind."),
        TableOption("events.num", LONG, None, "How many events all kinds have; without it no end."),
        TableOption("first-event.rate", INT, 10_000, "Events in a second of event time."),
        TableOption("tps", LONG, None, "Events that come in a second; without it all at once."),
        TableOption("seed", INT, 1, "Another one gives other events."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        known = _EVENTS if values["kind"] is None else _known(values["kind"])
        for column in stored_columns(table):
            if column.name not in known:
                raise ValidationError(
                    f"Nexmark has no column {column.name!r}{did_you_mean(column.name, known)}",
                    span=column.span,
                )
        count = _generator(values).count(values["kind"]) if values["kind"] else values["events.num"]
        return SourceAbilities(
            is_bounded=values["events.num"] is not None, takes_projection=True, rows=count
        )

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

        values = self.values(node.table)
        generator = _generator(values)
        made = NexmarkColumns(generator, values["kind"], arrow_schema_of(node.schema))
        count = generator.count(values["kind"]) if values["kind"] else values["events.num"]
        return env.generate(made, count, values["tps"], columns=True).name(
            f"Source: {node.path.name}"
        )


def _known(kind: str) -> list[str]:
    names = COLUMNS[kind]
    return [*names, *(_NAMES[name] for name in names if name in _NAMES)]


def _generator(values: TableValues) -> NexmarkGenerator:
    from flinkpy.connectors.memory.nexmark import NexmarkGenerator

    return NexmarkGenerator(values["events.num"], values["first-event.rate"], values["seed"])


class NexmarkColumns:
    """The columns of the events of these numbers, in the types of a table."""

    def __init__(self, generator: NexmarkGenerator, kind: str | None, schema: pa.Schema) -> None:
        self._generator, self._kind, self._schema = generator, kind, schema

    def __call__(self, numbers: npt.NDArray[Any]) -> Any:
        import pyarrow as pa

        if self._kind is not None:
            columns = self._of_kind(self._kind, numbers)
            arrays = [_cast(columns[field.name], field.type) for field in self._schema]
        else:
            arrays = [self._of_events(field, numbers) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _of_kind(self, kind: str, numbers: npt.NDArray[Any]) -> dict[str, Any]:
        generator = self._generator
        if kind == "person":
            made = generator.persons(numbers)
        elif kind == "auction":
            made = generator.auctions(numbers)
            made["description"] = [f"about {name}" for name in made["item_name"]]
        else:
            made = generator.bids(numbers)
            made["url"] = _urls(made["auction"], made["bidder"])
        made["extra"] = ["x" * 16] * len(numbers)
        return {**made, **{name: made[own] for name, own in _NAMES.items() if own in made}}

    def _of_events(self, field: pa.Field, numbers: npt.NDArray[Any]) -> Any:
        import numpy as np
        import pyarrow as pa

        from flinkpy.connectors.memory.nexmark import AUCTIONS, BIDS, PERSONS, TOTAL

        epochs, offsets = np.divmod(numbers, TOTAL)
        types = np.where(offsets < PERSONS, 0, np.where(offsets < PERSONS + AUCTIONS, 1, 2))
        if field.name == "event_type":
            return pa.array(types).cast(field.type)
        code, share, before = {
            "person": (0, PERSONS, 0),
            "auction": (1, AUCTIONS, PERSONS),
            "bid": (2, BIDS, PERSONS + AUCTIONS),
        }[field.name]
        mine = types == code
        columns = self._of_kind(field.name, epochs[mine] * share + offsets[mine] - before)
        parts = [_cast(columns[part.name], part.type) for part in field.type]
        structs = pa.StructArray.from_arrays(parts, fields=list(field.type))
        places = np.cumsum(mine) - 1
        return structs.take(pa.array(places, mask=~mine))


def _urls(auctions: npt.NDArray[Any], bidders: npt.NDArray[Any]) -> list[str]:
    return [
        f"https://www.nexmark.com/item/{auction}/item.htm?query=1&channel_id={bidder}"
        for auction, bidder in zip(auctions.tolist(), bidders.tolist())
    ]


def _cast(values: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import pyarrow as pa

    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return array.cast(pa.timestamp(kind.unit)).cast(kind)
    return array.cast(kind)
