"""The options of the engine, by layer, under Flink's keys where Flink has them; and the frozen
dataclass that each layer reads once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.memory_sizes import NETWORK
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.process_memory import network_memory
from flinkpy.core.options.schema import choices, option, read
from flinkpy.core.options.state import folders
from flinkpy.core.options.tls.tls_files import TlsFiles


class RuntimeMode(Enum):
    """How a bounded job is run (PyFlink's RuntimeExecutionMode)."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"
    AUTOMATIC = "AUTOMATIC"


class AggregatePhases(Enum):
    """In how many phases windows are aggregated (Flink's AggregatePhaseStrategy)."""

    AUTO = "AUTO"
    TWO_PHASE = "TWO_PHASE"
    ONE_PHASE = "ONE_PHASE"


class SchedulingStrategyKind(Enum):
    PIPELINED_REGION = "pipelined-region"
    EAGER = "eager"
    LAZY_FROM_SOURCES = "lazy-from-sources"


class Target(Enum):
    EMBEDDED = "embedded"
    RAY = "ray"
    RAY_SESSION = "ray-session"
    RAY_APPLICATION = "ray-application"


class TaskThreadUse(Enum):
    """Which tasks have a thread of their own."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class OutputForm(Enum):
    """How the client shows what tasks print in other processes."""

    NAMED = "named"
    PLAIN = "plain"
    OFF = "off"


# -- the program -----------------------------------------------------------------------------------

PIPELINE_NAME = option("pipeline.name", str, None, "The job's name.")
PARALLELISM = option(
    "parallelism.default",
    int,
    1,
    "Parallelism of operators that set none.",
    at_least=1,
    at_most=1 << 15,
)
MAX_PARALLELISM = option(
    "pipeline.max-parallelism",
    int,
    None,
    "Number of key groups; derived from the parallelism when absent.",
    at_least=1,
    at_most=1 << 15,
)
OPERATOR_CHAINING = option(
    "pipeline.operator-chaining.enabled",
    bool,
    True,
    "Whether operators may run in one task.",
    aliases=("pipeline.operator-chaining",),
)
OPERATOR_FUSION = option(
    "pipeline.operator-fusion.enabled",
    bool,
    True,
    "Whether adjacent stateless operators of a chain run as one generated loop.",
)
OBJECT_REUSE = option(
    "pipeline.object-reuse",
    bool,
    False,
    "Hand the same object to every consumer instead of copies.",
)
RUNTIME_MODE = option(
    "execution.runtime-mode", RuntimeMode, RuntimeMode.STREAMING, "STREAMING, BATCH or AUTOMATIC."
)
AGGREGATE_PHASES = option(
    "table.optimizer.agg-phase-strategy",
    AggregatePhases,
    AggregatePhases.AUTO,
    "Whether tumbling and sliding windows, aggregates without keys and limit() work "
    "before the exchange as well as "
    "after it: AUTO where that saves work, TWO_PHASE wherever the results stay the same, "
    "ONE_PHASE never. In batch "
    "jobs windows always have one phase.",
)
BUFFER_TIMEOUT = option(
    "execution.buffer-timeout.interval",
    timedelta,
    timedelta(milliseconds=100),
    (
        "How long a partly filled batch may wait before it is sent. A task that has nothing "
        "to do sends at once."
    ),
    aliases=("execution.buffer-timeout",),
    at_least=timedelta(milliseconds=-1),
)
AUTO_WATERMARK_INTERVAL = option(
    "pipeline.auto-watermark-interval",
    timedelta,
    timedelta(milliseconds=200),
    "How often periodic watermarks are emitted.",
    at_least=timedelta(),
)

PYFLINK_IMPORTS = option(
    "python.pyflink-imports",
    bool,
    False,
    ("Whether `import pyflink` means flinkpy, also on the workers (`flinkpy run --pyflink`)."),
)

# -- where it runs ---------------------------------------------------------------------------------

TARGET = option(
    "execution.target",
    Target,
    None,
    "embedded, ray-session, ray-application, or ray: the program's own cluster in a Ray "
    "job and where it has a "
    "runtime environment, else a session. Without it ray inside a Ray job or where Ray is "
    "initialised, embedded "
    "otherwise.",
)
ATTACHED = option(
    "execution.attached", bool, True, "Whether `flinkpy run` waits for the job to end."
)
RAY_ADDRESS = option("ray.address", str, "auto", "The Ray cluster to use: auto, or host:port.")
CLUSTER_NAME = option(
    "cluster.id",
    str,
    "default",
    "The flinkpy session on the Ray cluster; jobs of one session share its TaskExecutors.",
)
TASK_SLOTS = option(
    "taskmanager.numberOfTaskSlots",
    int,
    None,
    "Slots per TaskExecutor; 1 on Ray, as many as the job needs when embedded.",
    at_least=1,
)
TASK_CPUS = option(
    "taskmanager.ray.num-cpus-per-slot", float, 1.0, "CPUs a slot takes on Ray.", at_least=0
)
ON_HEAD_NODE = option(
    "jobmanager.ray.on-head-node",
    bool,
    False,
    "Whether the JobManager runs on Ray's head node, where a service of Kubernetes or a "
    "proxy finds its REST endpoint; else Ray "
    "chooses a node.",
)
SLOT_MAX = option(
    "slotmanager.number-of-slots.max",
    int,
    None,
    "How many slots the cluster may have at most.",
    at_least=1,
)
SPARE_WORKERS = option(
    "slotmanager.redundant-taskmanager-num",
    int,
    0,
    (
        "TaskExecutors that are started beyond what the running jobs need, so that one that "
        "is lost is replaced at once."
    ),
    at_least=0,
)
SLOT_IDLE_TIMEOUT = option(
    "resourcemanager.taskmanager-timeout",
    timedelta,
    timedelta(seconds=30),
    "How long a TaskExecutor may be idle before it is stopped.",
    at_least=timedelta(),
)
PREVIOUS_WORKERS_TIMEOUT = option(
    "resourcemanager.previous-worker.recovery.timeout",
    timedelta,
    timedelta(seconds=2),
    (
        "How long a ResourceManager that took over waits for the workers of the one before, "
        "before it starts others."
    ),
    at_least=timedelta(),
)
SLOT_CHECK_DELAY = option(
    "slotmanager.requirement-check-delay",
    timedelta,
    timedelta(milliseconds=50),
    "How long the ResourceManager waits for the slots of a job that has ended before it "
    "starts workers in their "
    "place.",
    at_least=timedelta(),
)
SLOT_REQUEST_TIMEOUT = option(
    "slot.request.timeout",
    timedelta,
    timedelta(minutes=5),
    "How long a job waits for a slot before it fails.",
    at_least=timedelta(),
)
CANCELLATION_TIMEOUT = option(
    "task.cancellation.timeout",
    timedelta,
    timedelta(minutes=3),
    "How long a cancelled task's function may take to return. Then on Ray its worker "
    "ends; embedded, the job ends "
    "without it. 0: no limit.",
    at_least=timedelta(),
)
CANCELLATION_INTERVAL = option(
    "task.cancellation.interval",
    timedelta,
    timedelta(seconds=30),
    "The function of a cancelled task that does not return is interrupted in this "
    "interval, the first time after a "
    "second at most, if its task has a thread of its own. 0: never.",
    at_least=timedelta(),
)
TASK_THREAD = option(
    "task.own-thread",
    TaskThreadUse,
    TaskThreadUse.AUTO,
    "Whether tasks have threads of their own: auto (those whose functions wait, or are "
    "opened), always, or never (all "
    "tasks of a TaskExecutor share one thread).",
)
SLOT_OFFER_TIMEOUT = option(
    "taskmanager.slot.timeout",
    timedelta,
    timedelta(seconds=10),
    (
        "How long a job may take to accept a slot that was promised to it. Then the slot is "
        "given back."
    ),
    at_least=timedelta(),
)
SCHEDULING_STRATEGY = option(
    "jobmanager.scheduler.strategy",
    SchedulingStrategyKind,
    SchedulingStrategyKind.PIPELINED_REGION,
    "pipelined-region, eager or lazy-from-sources.",
)
ATTEMPTS_HISTORY = option(
    "jobmanager.execution.attempts-history-size",
    int,
    16,
    "How many attempts of each subtask, the latest that have ended, are remembered.",
    at_least=1,
)
SHOW_PROGRESS = option(
    "client.progress", bool, None, "The live progress line; on where standard error is a terminal."
)
TASK_OUTPUT = option(
    "client.task-output",
    OutputForm,
    OutputForm.NAMED,
    "What tasks on Ray print, where the program waits: named (the task's name before each "
    "line), plain, or off. It is "
    "in Ray's logs in any case.",
)

# -- remote calls ----------------------------------------------------------------------------------

RPC_TIMEOUT = option(
    "rpc.ask.timeout",
    timedelta,
    timedelta(seconds=10),
    "How long a remote call waits for its answer.",
    aliases=("pekko.ask.timeout",),
    at_least=timedelta(milliseconds=1),
)
HEARTBEAT_INTERVAL = option(
    "heartbeat.interval",
    timedelta,
    timedelta(seconds=10),
    "How often heartbeats are sent.",
    at_least=timedelta(milliseconds=1),
)
HEARTBEAT_TIMEOUT = option(
    "heartbeat.timeout",
    timedelta,
    timedelta(seconds=50),
    "Silence after which the other side counts as dead.",
    at_least=timedelta(milliseconds=1),
)
REGISTRATION_INITIAL = option(
    "cluster.registration.initial-timeout",
    timedelta,
    timedelta(milliseconds=100),
    "First pause between registration attempts.",
    at_least=timedelta(milliseconds=1),
)
REGISTRATION_MAX = option(
    "cluster.registration.max-timeout",
    timedelta,
    timedelta(seconds=30),
    "Longest pause between registration attempts.",
    at_least=timedelta(milliseconds=1),
)

# -- restarts --------------------------------------------------------------------------------------

RESTART_STRATEGY = option(
    "restart-strategy.type",
    str,
    None,
    "none, fixed-delay, failure-rate or exponential-delay; when absent, exponential-delay "
    "with checkpoints, none "
    "without.",
    aliases=("restart-strategy",),
    choices=choices(
        "none",
        "fixed-delay",
        "failure-rate",
        "exponential-delay",
        off="none",
        disable="none",
        fixeddelay="fixed-delay",
        failurerate="failure-rate",
        exponentialdelay="exponential-delay",
    ),
)
RESTART_ATTEMPTS = option(
    "restart-strategy.fixed-delay.attempts", int, 1, "How often fixed-delay restarts.", at_least=0
)
RESTART_DELAY = option(
    "restart-strategy.fixed-delay.delay",
    timedelta,
    timedelta(seconds=1),
    "Pause before a fixed-delay restart.",
    at_least=timedelta(),
)
RESTART_RATE_MAX = option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    int,
    1,
    "Failures within the interval before failure-rate gives up.",
    at_least=0,
)
RESTART_RATE_INTERVAL = option(
    "restart-strategy.failure-rate.failure-rate-interval",
    timedelta,
    timedelta(minutes=1),
    "The interval failure-rate counts in.",
    at_least=timedelta(milliseconds=1),
)
RESTART_RATE_DELAY = option(
    "restart-strategy.failure-rate.delay",
    timedelta,
    timedelta(seconds=1),
    "Pause before a failure-rate restart.",
    at_least=timedelta(),
)
RESTART_EXP_INITIAL = option(
    "restart-strategy.exponential-delay.initial-backoff",
    timedelta,
    timedelta(seconds=1),
    "First pause of exponential-delay. Where it is not set, a job whose worker was lost "
    "restarts after 50 ms, unless "
    "it had failed within 5 s before.",
    at_least=timedelta(milliseconds=1),
)
RESTART_EXP_MAX = option(
    "restart-strategy.exponential-delay.max-backoff",
    timedelta,
    timedelta(minutes=1),
    "Longest pause of exponential-delay.",
    at_least=timedelta(milliseconds=1),
)
RESTART_EXP_FACTOR = option(
    "restart-strategy.exponential-delay.backoff-multiplier",
    float,
    1.5,
    "Growth of the pause.",
    at_least=1,
)
RESTART_EXP_RESET = option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    timedelta,
    timedelta(hours=1),
    "How long a job must run until the next pause is the first one again.",
    at_least=timedelta(milliseconds=1),
)
RESTART_EXP_ATTEMPTS = option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    int,
    None,
    "Give up after so many restarts in a row; never when absent.",
    at_least=1,
)

# -- what does not fit into memory -----------------------------------------------------------------

TMP_DIRS = option(
    "io.tmp.dirs",
    str,
    None,
    (
        "Folders for temporary files, separated by commas or as in PATH; the system's "
        "temporary folder when absent."
    ),
)
SORT_MEMORY = option(
    "execution.sorted-inputs.memory",
    int,
    128 << 20,
    (
        "Bytes a keyed operator of a batch job sorts in memory, estimated; the rest is spilled. "
        "Its share of the managed memory when absent, if that is limited."
    ),
    memory=True,
)
BATCH_SHUFFLE_MEMORY = option(
    "taskmanager.memory.framework.off-heap.batch-shuffle.size",
    int,
    64 << 20,
    "Bytes of blocking results a TaskExecutor keeps in memory; the rest is spilled.",
    memory=True,
)


def spill_folders(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The folders of ``io.tmp.dirs``."""
    return tuple(folders(read(values, TMP_DIRS)))


# -- the network -----------------------------------------------------------------------------------

SEGMENT_SIZE = option(
    "taskmanager.memory.segment-size",
    int,
    32 << 10,
    "Bytes of one segment, the unit in which batches in flight are counted.",
    memory=True,
    at_least=1,
)
BUFFERS_PER_CHANNEL = option(
    "taskmanager.network.memory.buffers-per-channel",
    int,
    2,
    "Batches a receiver always grants to each of its channels.",
    at_least=1,
)
FLOATING_BUFFERS = option(
    "taskmanager.network.memory.floating-buffers-per-gate",
    int,
    8,
    "Batches a gate grants to whichever channel has a backlog.",
    at_least=0,
)
MAX_BUFFERS_PER_CHANNEL = option(
    "taskmanager.network.memory.max-buffers-per-channel",
    int,
    1,
    "Batches of rows that may be queued for one channel before its producer waits.",
    at_least=1,
)
BATCH_RECORDS = option(
    "taskmanager.network.batch.max-records", int, 4096, "Records in one batch at most.", at_least=1
)
BATCH_BYTES = option(
    "taskmanager.network.batch.max-bytes",
    int,
    1 << 20,
    "Bytes in one batch at most (estimated for rows).",
    memory=True,
    at_least=1,
)
MAX_FRAME = option(
    "taskmanager.network.max-frame-size",
    int,
    64 << 20,
    "Bytes of one frame at most; a longer one is refused.",
    memory=True,
    at_least=1,
)
BIND_HOST = option(
    "taskmanager.bind-host",
    str,
    None,
    "The address the data port listens on; the node's own address on Ray, loopback when embedded.",
)
DATA_PORT = option(
    "taskmanager.data.port",
    Ports,
    Ports.of(0),
    (
        "The data port; 0 picks a free one. Of a range (50100-50200) each TaskExecutor takes "
        "the first free one."
    ),
    aliases=("taskmanager.data.bind-port",),
)
PARTITION_REQUEST_TIMEOUT = option(
    "taskmanager.network.partition-request-timeout",
    timedelta,
    timedelta(seconds=10),
    "How long a consumer waits for its producer's partition to appear. A function that "
    "holds up the producer's "
    "process does not use it up.",
    at_least=timedelta(milliseconds=1),
)
CONNECT_TIMEOUT = option(
    "taskmanager.network.connect-timeout",
    timedelta,
    timedelta(seconds=30),
    "How long it may take to connect to another TaskExecutor, and for both to prove that "
    "they know the cluster's "
    "secret.",
    at_least=timedelta(milliseconds=1),
)


INTERNAL_TLS = option(
    "security.ssl.internal.enabled",
    bool,
    False,
    (
        "Whether records travel between TaskExecutors over TLS 1.3, and both sides show a "
        "certificate. Ray's own calls are not covered: see RAY_USE_TLS of Ray."
    ),
)
DATA_TLS = option(
    "taskmanager.data.ssl.enabled",
    bool,
    True,
    "Whether data connections are encrypted, if security.ssl.internal.enabled is true.",
)
INTERNAL_KEYSTORE = option(
    "security.ssl.internal.keystore",
    str,
    None,
    (
        "A PEM file on each TaskExecutor's machine with its certificate, those between it and "
        "its authority, and, unless it has a file of its own, the key."
    ),
)
INTERNAL_KEY = option(
    "security.ssl.internal.key",
    str,
    None,
    "A PEM file with the key of the certificate (not an option of Flink's).",
)
INTERNAL_KEY_PASSWORD = option(
    "security.ssl.internal.key-password", str, None, "The password of the key, if it is encrypted."
)
INTERNAL_TRUSTSTORE = option(
    "security.ssl.internal.truststore",
    str,
    None,
    "A PEM file with the authorities whose certificates other TaskExecutors may show.",
)
INTERNAL_KEYSTORE_PASSWORD = option(
    "security.ssl.internal.keystore-password",
    str,
    None,
    "The password of a Java keystore.",
    without_effect="files in PEM have no password, only keys have one",
)
INTERNAL_TRUSTSTORE_PASSWORD = option(
    "security.ssl.internal.truststore-password",
    str,
    None,
    "The password of a Java truststore.",
    without_effect="files in PEM have no password",
)


@dataclass(frozen=True)
class NetworkConfig:
    """What the shuffle environment of one TaskExecutor needs to know."""

    total_segments: int = (64 << 20) // (32 << 10)
    segment_size: int = 32 << 10
    buffers_per_channel: int = 2
    floating_buffers: int = 8
    max_buffers_per_channel: int = 1
    batch_records: int = 4096
    batch_bytes: int = 1 << 20
    max_frame: int = 64 << 20
    bind_host: str = "127.0.0.1"
    data_port: int | Ports = 0
    partition_request_timeout: timedelta = timedelta(seconds=10)
    connect_timeout: timedelta = timedelta(seconds=30)
    batch_shuffle_memory: int = 64 << 20
    spill_folders: tuple[str, ...] = ()
    tls: TlsFiles | None = None  # of data connections

    @staticmethod
    def of(values: Mapping[str, Any]) -> NetworkConfig:
        segment = read(values, SEGMENT_SIZE)
        network = network_memory(values)
        segments = network // segment
        if segments < 1:
            raise ConfigurationError(
                f"option {NETWORK.key}: {network} bytes do not "
                f"hold one segment of {segment} "
                f"({SEGMENT_SIZE.key}); raise it"
            )
        return NetworkConfig(
            segments,
            segment,
            read(values, BUFFERS_PER_CHANNEL),
            read(values, FLOATING_BUFFERS),
            read(values, MAX_BUFFERS_PER_CHANNEL),
            read(values, BATCH_RECORDS),
            read(values, BATCH_BYTES),
            read(values, MAX_FRAME),
            read(values, BIND_HOST) or "127.0.0.1",
            read(values, DATA_PORT),
            read(values, PARTITION_REQUEST_TIMEOUT),
            read(values, CONNECT_TIMEOUT),
            read(values, BATCH_SHUFFLE_MEMORY),
            spill_folders(values),
            internal_tls(values),
        )


def internal_tls(values: Mapping[str, Any]) -> TlsFiles | None:
    """The files of data connections; None if these are not encrypted. Raises ConfigurationError
    if a file that is needed is not named."""
    if not (read(values, INTERNAL_TLS) and read(values, DATA_TLS)):
        return None
    keystore, truststore = read(values, INTERNAL_KEYSTORE), read(values, INTERNAL_TRUSTSTORE)
    for named, key, holds in (
        (keystore, INTERNAL_KEYSTORE.key, "the TaskExecutor's certificate"),
        (truststore, INTERNAL_TRUSTSTORE.key, "the authorities of other TaskExecutors"),
    ):
        if named is None:
            raise ConfigurationError(
                f"option {INTERNAL_TLS.key}: name the PEM file of {holds} with {key}"
            )
    return TlsFiles(
        "security.ssl.internal",
        keystore,
        read(values, INTERNAL_KEY),
        read(values, INTERNAL_KEY_PASSWORD),
        truststore,
    )


@dataclass(frozen=True)
class RpcConfig:
    """Timeouts of remote calls, heartbeats and registrations."""

    ask_timeout: timedelta = timedelta(seconds=10)
    heartbeat_interval: timedelta = timedelta(seconds=10)
    heartbeat_timeout: timedelta = timedelta(seconds=50)
    registration_initial: timedelta = timedelta(milliseconds=100)
    registration_max: timedelta = timedelta(seconds=30)

    @staticmethod
    def of(values: Mapping[str, Any]) -> RpcConfig:
        config = RpcConfig(
            read(values, RPC_TIMEOUT),
            read(values, HEARTBEAT_INTERVAL),
            read(values, HEARTBEAT_TIMEOUT),
            read(values, REGISTRATION_INITIAL),
            read(values, REGISTRATION_MAX),
        )
        if config.heartbeat_timeout < config.heartbeat_interval:
            raise ConfigurationError(
                f"option {HEARTBEAT_TIMEOUT.key}: it is shorter than "
                f"{HEARTBEAT_INTERVAL.key}, so every worker would count as "
                "dead between two heartbeats; raise it, or lower that"
            )
        return config


@dataclass(frozen=True)
class SlotConfig:
    """Timeouts and limits of the slot protocol."""

    slots_per_executor: int = 1
    max_slots: int | None = None
    idle_timeout: timedelta = timedelta(seconds=30)
    request_timeout: timedelta = timedelta(minutes=5)
    offer_timeout: timedelta = timedelta(seconds=10)
    requirement_check_delay: timedelta = timedelta(milliseconds=50)
    previous_workers_timeout: timedelta = timedelta(seconds=2)
    spare_workers: int = 0

    @staticmethod
    def of(values: Mapping[str, Any], default_slots: int = 1) -> SlotConfig:
        return SlotConfig(
            read(values, TASK_SLOTS) or default_slots,
            read(values, SLOT_MAX),
            read(values, SLOT_IDLE_TIMEOUT),
            read(values, SLOT_REQUEST_TIMEOUT),
            read(values, SLOT_OFFER_TIMEOUT),
            read(values, SLOT_CHECK_DELAY),
            read(values, PREVIOUS_WORKERS_TIMEOUT),
            read(values, SPARE_WORKERS),
        )
