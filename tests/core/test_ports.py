"""Options that name ports."""

from __future__ import annotations

import errno

import pytest

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.options.history import HistoryConfig
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.rest import RestConfig
from flinkpy.core.options.schema import validate


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("0", [0]),
        ("8081", [8081]),
        (" 8081 - 8083 ", [8081, 8082, 8083]),
        ("9000,8081-8082", [9000, 8081, 8082]),
    ],
)
def test_ports_are_tried_in_the_order_in_which_they_stand(text: str, ports: list[int]) -> None:
    assert list(Ports.parse(text)) == ports


@pytest.mark.finding("newcomers 7")
@pytest.mark.parametrize(
    "key",
    [
        "rest.port",
        "rest.bind-port",
        "taskmanager.data.port",
        "taskmanager.data.bind-port",
        "historyserver.web.port",
        "metrics.reporter.prom.port",
    ],
)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("eighty", "'eighty' is no port, such as 8081, and no range of them, such as 8081-8090"),
        ("8081-", "'8081-' is no port"),
        ("-1", "'-1' is no port"),
        ("65536", "65536 is too large; it must be at most 65535"),
        ("8090-8081", "write 8081-8090"),
    ],
)
def test_what_is_no_port_is_told_with_the_key_that_was_used(
    key: str, value: str, says: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        validate({key: value})
    assert str(refused.value).startswith(f"option {key}: ")
    assert says in str(refused.value)


@pytest.mark.finding("newcomers 7")
def test_ranges_are_taken_where_flink_takes_them() -> None:
    assert (
        str(RestConfig.of({"rest.bind-port": "8081-8090", "rest.port": "80"}).port) == "8081-8090"
    )
    assert (
        str(NetworkConfig.of({"taskmanager.data.bind-port": "50100-50200"}).data_port)
        == "50100-50200"
    )
    assert (
        str(
            HistoryConfig.of(
                {"historyserver.archive.fs.dir": "/a", "historyserver.web.port": "8082-8090"}
            ).rest.port
        )
        == "8082-8090"
    )


def test_a_port_that_is_not_the_reason_is_not_followed_by_others() -> None:
    tried: list[int] = []

    def listen(port: int) -> None:
        tried.append(port)
        raise OSError(errno.EADDRINUSE if port < 3 else errno.EADDRNOTAVAIL, "no")

    with pytest.raises(OSError, match="no"):
        Ports.parse("1-9").first(listen)
    assert tried == [1, 2, 3]
