"""The REST endpoint, under Flink's keys where Flink has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flinkpy.core.options.schema import option, read


class RestAuthentication(Enum):
    TOKEN = "TOKEN"
    NONE = "NONE"


REST_ENABLED = option(
    "rest.enabled", bool, False,
    "Whether the JobManager answers Flink's REST requests. Where it does is printed, with the token, by a program that runs embedded and by "
    "`flinkpy session start`; `flinkpy session list` prints it too.")
REST_PORT = option(
    "rest.port", int, None, "The port of the REST endpoint. Without it 8081, or a free one where that is taken.", at_least=0, at_most=65535,
    aliases=("rest.bind-port",))
REST_BIND_ADDRESS = option(
    "rest.bind-address", str, "localhost", "Where the REST endpoint listens: only for programs of this machine, unless it is another address.",
    aliases=("rest.address",))
REST_AUTHENTICATION = option(
    "rest.authentication", RestAuthentication, RestAuthentication.TOKEN,
    "TOKEN: whoever asks must send the header 'Authorization: Bearer …' with the token. NONE: whoever reaches the port may cancel jobs.")
REST_TOKEN = option("rest.token", str, None, "The token; without it, a new one at each start.")


@dataclass(frozen=True)
class RestConfig:
    """``token`` None: one is made, if there is to be one."""

    enabled: bool = False
    address: str = "localhost"
    port: int | None = None
    needs_token: bool = True
    token: str | None = None

    @staticmethod
    def of(values: Mapping[str, Any]) -> RestConfig:
        return RestConfig(read(values, REST_ENABLED), read(values, REST_BIND_ADDRESS), read(values, REST_PORT),
                          read(values, REST_AUTHENTICATION) is RestAuthentication.TOKEN, read(values, REST_TOKEN))
