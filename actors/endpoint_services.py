"""What the endpoints of one process have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.stores_of_locations import file_store_of


@dataclass(frozen=True)
class EndpointServices:
    """The RPC service of the process, how the cluster is configured, and in which store a location
    is, of checkpoints say (``file_stores``)."""

    rpc: RpcService
    rpc_config: RpcConfig = field(default_factory=RpcConfig)
    slot_config: SlotConfig = field(default_factory=SlotConfig)
    file_stores: Callable[[str], FileStore] = file_store_of
