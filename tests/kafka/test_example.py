"""The examples over topics of Kafka."""

from __future__ import annotations

import json

from examples.kafka_to_kafka import main
from examples.top_ten import ranked
from flinkpy.core.clock import SystemClock
from tests.kafka.broker import Broker, Record

HOUR_MS = 3_600_000


def test_orders_meet_their_payments_of_the_same_hour_once(broker: Broker) -> None:
    orders, payments, target = broker.new_topic(2), broker.new_topic(2), broker.new_topic(3)
    begin = SystemClock().time_ms() // HOUR_MS * HOUR_MS - 3 * HOUR_MS
    for topic, field in ((orders, "article"), (payments, "cents")):
        times = [
            begin + (HOUR_MS if topic == payments and number == 7 else number)
            for number in range(9)
        ]
        values = [json.dumps({"order": number, field: number * 10}).encode() for number in range(9)]
        broker.produce(
            topic,
            [
                Record(value, partition=number % 2, timestamp=times[number])
                for number, value in enumerate(values)
            ],
        )
    main(broker.bootstrap, orders, payments, target)
    found = broker.read(target)
    assert sorted(json.loads(each.value or b"")["order"] for each in found) == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        8,
    ]
    for each in found:
        number = int(each.key or b"")
        assert json.loads(each.value or b"") == {
            "order": number,
            "article": number * 10,
            "cents": number * 10,
        }


def test_the_ten_best_are_what_the_topic_of_upserts_has_at_last(broker: Broker) -> None:
    sales, best = broker.new_topic(2), broker.new_topic(2)
    sold = [{"article": f"article {n % 13:02d}", "cents": 1 + n} for n in range(130)]
    broker.produce(
        sales, [Record(json.dumps(each).encode(), partition=at % 2) for at, each in enumerate(sold)]
    )
    sums = {
        f"article {article:02d}": sum(1 + n for n in range(article, 130, 13))
        for article in range(13)
    }
    wanted = sorted(sums.items(), key=lambda pair: -pair[1])[:10]
    found = ranked(broker.bootstrap, sales, best).to_pylist()
    assert [(row["place"], (row["article"], row["cents"])) for row in found] == list(
        enumerate(wanted, 1)
    )
    assert {each.key for each in broker.read(best)} == {
        f'{{"place":{place}}}'.encode() for place in range(1, 11)
    }
