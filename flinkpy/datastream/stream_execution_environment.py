"""StreamExecutionEnvironment: where a program begins (sources), says how it runs (options), and ends (execute)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.common.configuration import Configuration
from flinkpy.common.execution_config import ExecutionConfig, positive
from flinkpy.common.foreign_options import check_options
from flinkpy.common.job_client import JobClient, execution_result
from flinkpy.common.job_execution_result import JobExecutionResult
from flinkpy.common.restart_strategy import RestartStrategyConfiguration
from flinkpy.common.time import to_milliseconds
from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import SCHEMA, read
from flinkpy.core.program.launch_context import ProgramAborted, note_defined, note_used, plan_listener
from flinkpy.core.program.prompts import shorten_errors
from flinkpy.datastream.checkpoint_config import CheckpointConfig
from flinkpy.datastream.checkpointing_mode import CheckpointingMode
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.env.python_files import put_on_path
from flinkpy.datastream.env.sources import SourceMethods
from flinkpy.datastream.execution_mode import RuntimeExecutionMode
from flinkpy.datastream.results.whole_results import RaySources
from flinkpy.datastream.slot_sharing_group import SlotSharingGroup
from flinkpy.datastream.state_backend import StateBackend, state_backend_of
from flinkpy.datastream.time_characteristic import TimeCharacteristic
from flinkpy.graph.changes import refuse_added_updates
from flinkpy.graph.transformations import Transformation

if TYPE_CHECKING:
    from flinkpy.graph.stream_graph import StreamGraph

LOG = logging.getLogger(__name__)
DEFAULT_JOB_NAME = "flinkpy job"
_default_local_parallelism: int | None = None


class StreamExecutionEnvironment(SourceMethods, RaySources):
    """One program. Options come from the configuration file, the environment, ``-D`` and the program's code; later ones win.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_parallelism(2).get_parallelism()
    2
    >>> env.from_collection([1, 2, 3]).map(lambda x: x + 1).print().get_name()
    'Sink: Print to Std. Out'
    >>> env.execute("add one")  # doctest: +SKIP
    """

    def __init__(self, configuration: Configuration | Mapping[str, Any] | None = None) -> None:
        from flinkpy.cluster.settings import program_settings

        shorten_errors()
        self._values: dict[str, Any] = program_settings()
        if _default_local_parallelism is not None:
            self._values.setdefault(options.PARALLELISM.key, _default_local_parallelism)
        self._transformations: list[Transformation] = []
        self._groups: dict[str, SlotSharingGroup] = {}
        self._last_id = 0
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(configuration: Configuration | Mapping[str, Any] | None = None) -> StreamExecutionEnvironment:
        """A new environment; where its jobs run is decided at ``execute`` (option ``execution.target``)."""
        return StreamExecutionEnvironment(configuration)

    # -- options --------------------------------------------------------------------------------------------------------------

    def configure(self, configuration: Configuration | Mapping[str, Any]) -> StreamExecutionEnvironment:
        """Sets options by key. An unknown key is refused, naming the nearest; keys under ``user.`` are the program's own. In a program written for
        PyFlink (``flinkpy run --pyflink``) unknown keys are kept, have no effect, and are told in one warning."""
        values = Configuration(configuration)
        found: dict[str, Any] = {}
        values.add_all_to_dict(found)
        with located():
            check_options(found)
        self._values.update({SCHEMA.get(key).key if key in SCHEMA else key: value for key, value in found.items()})
        return self

    def get_config(self) -> ExecutionConfig:
        """The typed face of the options; changes count here."""
        return ExecutionConfig(self._values)

    def get_configuration(self) -> Configuration:
        """A copy of all options that are set."""
        return Configuration(self._values)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """For operators that set none."""
        with located():
            self.get_config().set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Of operators that set none."""
        return self.get_config().get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups, at most 32768: no later parallelism can be greater."""
        with located():
            self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """-1 where it is derived from the parallelism."""
        return self.get_config().get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING (default); BATCH, for sources that end; or AUTOMATIC: BATCH where every source ends.

        In BATCH each stage runs when those before it are through, so a job may have more stages and subtasks than there are slots. Keyed
        operators see one key after the other, by time; running results (``sum``, ``reduce``) are not emitted, only each key's last one. Event
        time jumps to its end behind the last record: nothing is late (Flink's semantics, FLIP-134).
        """
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise refuse(f"set_runtime_mode() takes a RuntimeExecutionMode, this is {execution_mode!r:.80}")
        self._values[options.RUNTIME_MODE.key] = execution_mode
        return self

    def set_buffer_timeout(self, timeout_millis: int | timedelta) -> StreamExecutionEnvironment:
        """At the latest after so many milliseconds a partly filled batch is sent; 0: at once; -1: only when full or idle."""
        milliseconds = to_milliseconds(timeout_millis)
        if isinstance(milliseconds, bool) or not isinstance(milliseconds, int) or milliseconds < -1:
            raise refuse(f"set_buffer_timeout() takes milliseconds, 0 or -1, this is {timeout_millis!r}")
        self._values[options.BUFFER_TIMEOUT.key] = timedelta(milliseconds=milliseconds)
        return self

    def get_buffer_timeout(self) -> int:
        """Milliseconds."""
        return to_milliseconds(read(self._values, options.BUFFER_TIMEOUT))

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Every operator runs in a task of its own."""
        self._values[options.OPERATOR_CHAINING.key] = False
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may run in one task."""
        return bool(read(self._values, options.OPERATOR_CHAINING))

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> StreamExecutionEnvironment:
        """What a failed job does next."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise refuse(f"set_restart_strategy() takes one of RestartStrategies, this is {restart_strategy_configuration!r:.80}")
        self.get_config().set_restart_strategy(restart_strategy_configuration)
        return self

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Says what slots of this group must have; operators then name the group only."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise refuse(f"register_slot_sharing_group() takes a SlotSharingGroup, this is {slot_sharing_group!r:.80}")
        self._groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    def _slot_sharing_group(self, group: str | SlotSharingGroup) -> SlotSharingGroup:
        return group if isinstance(group, SlotSharingGroup) else self._groups.get(group, SlotSharingGroup(group))

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The one that is set; else what the configuration says."""
        return self.get_config().get_restart_strategy()

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """False: operators of one task have one max parallelism."""
        return False

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """For embedded programs that set no parallelism: environments made from now on in this process start with it."""
        global _default_local_parallelism
        with located():
            _default_local_parallelism = positive(parallelism, "parallelism")

    def get_default_local_parallelism(self) -> int:
        """What was set; else option ``parallelism.default``."""
        return _default_local_parallelism or self.get_parallelism()

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Flink 1.x: ProcessingTime turns periodic watermarks off, the others emit them every 200 ms; assigned timestamps do the rest."""
        if not isinstance(characteristic, TimeCharacteristic):
            raise refuse(f"set_stream_time_characteristic() takes a TimeCharacteristic, this is {characteristic!r:.80}")
        self._values[kept_options.TIME_CHARACTERISTIC.key] = characteristic.name
        self.get_config().set_auto_watermark_interval(0 if characteristic is TimeCharacteristic.ProcessingTime else 200)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """What was set; event time where nothing was."""
        return TimeCharacteristic[str(read(self._values, kept_options.TIME_CHARACTERISTIC))]

    # -- checkpoints: kept today, carried out with the checkpoints milestone --------------------------------------------------

    def enable_checkpointing(self, interval: int | timedelta, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE) -> StreamExecutionEnvironment:
        """Checkpoints every ``interval`` milliseconds. Kept; takes effect with the checkpoints milestone."""
        with located():
            self.get_checkpoint_config().set_checkpoint_interval(interval).set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint settings; changes count here."""
        return CheckpointConfig(self._values)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds; -1: no checkpoints."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE or AT_LEAST_ONCE."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The same (Flink 2's name)."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether also where records of several channels meet out of order."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go by default; kept until there are savepoints."""
        self._values[kept_options.SAVEPOINT_DIRECTORY.key] = directory
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """What was set, or None."""
        directory: str | None = read(self._values, kept_options.SAVEPOINT_DIRECTORY)
        return directory

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Where keyed state lives: ``HashMapStateBackend()`` (default) or ``EmbeddedRocksDBStateBackend()``; option ``state.backend.type``."""
        if not isinstance(state_backend, StateBackend):
            raise refuse(f"set_state_backend() takes HashMapStateBackend() or EmbeddedRocksDBStateBackend(), this is {state_backend!r:.80}")
        with located():
            self._values.update(state_backend.settings())
        return self

    def get_state_backend(self) -> StateBackend:
        """The one that is chosen."""
        return state_backend_of(self._values)

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """State changes are logged between checkpoints. Kept."""
        self._values[kept_options.CHANGELOG.key] = bool(enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """None: nobody said."""
        enabled: bool | None = read(self._values, kept_options.CHANGELOG)
        return enabled

    # -- the program's files --------------------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """A Python file, folder or zip the program and its functions import: put on this process's ``sys.path``, on Ray sent to the job's workers.

        (Modules beside the program travel with it anyway.)"""
        put_on_path(file_path)
        self._append(kept_options.PYTHON_FILES.key, file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive (zip, tar) the functions need. On Ray it lies unpacked in the working directory of the job's workers, in a folder of its name,
        or in ``target_dir``, as in Flink. Embedded, nothing is unpacked, and ``execute`` warns of it."""
        self._append(kept_options.PYTHON_ARCHIVES.key, archive_path if target_dir is None else f"{archive_path}#{target_dir}")

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """The packages the functions need, as a requirements.txt. On Ray the job's workers run where pip has installed them; from the folder
        ``requirements_cache_dir`` alone, where one is given, which every node must have. Embedded, they must be installed in this process:
        ``execute`` names those that are missing."""
        self._values[kept_options.PYTHON_REQUIREMENTS.key] = (
            requirements_file_path if requirements_cache_dir is None else f"{requirements_file_path}#{requirements_cache_dir}")

    def add_jars(self, *jars_path: str) -> NoReturn:
        """Refused: there is no JVM to load a jar."""
        raise refuse(f"add_jars(): there is no JVM that could load {', '.join(map(str, jars_path)) or 'a jar'}; take the line out, and read and "
                     "write through flinkpy.connectors")

    def add_classpaths(self, *classpaths: str) -> NoReturn:
        """Refused: there is no JVM to load a class."""
        raise refuse(f"add_classpaths(): there is no JVM that could load {', '.join(map(str, classpaths)) or 'a class'}; take the line out, and put "
                     "Python modules on the path with add_python_file()")

    def set_python_executable(self, python_exec: str) -> None:
        """The workers' interpreter. Kept."""
        self._values[kept_options.PYTHON_EXECUTABLE.key] = python_exec

    def _append(self, key: str, value: str) -> None:
        before = self._values.get(key)
        self._values[key] = f"{before},{value}" if before else value

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """A file that functions find by name: ``runtime_context.get_cached_file(name)``. On Ray it must lie at that path on every worker."""
        if not all(isinstance(each, str) and each and not set(each) & set(";,") for each in (file_path, name)):
            raise refuse(f"register_cached_file() takes a path and a name without ';' and ',', these are {file_path!r:.80} and {name!r:.80}")
        before = self._values.get(kept_options.CACHED_FILES.key)
        entry = f"name:{name},path:{os.path.abspath(file_path) if '://' not in file_path else file_path}" + (",executable:true" if executable else "")
        self._values[kept_options.CACHED_FILES.key] = f"{before};{entry}" if before else entry

    # -- execution ------------------------------------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs what was defined since the last ``execute``, and waits for its end.

        Raises JobExecutionError when the job fails; its cause is a UserCodeError with the user's frame, the operator and the record when a
        function raised. A job submitted detached (``flinkpy run -d``) is not waited for.
        """
        job = self._submit(job_name)
        if not read(self._values, options.ATTACHED):
            return JobExecutionResult(job.job_id, job.name, -1, {})
        return execution_result(job.result(), job.name)

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Runs it and returns at once. At its end the program waits for jobs that would end with it, as embedded ones do."""
        from flinkpy.cluster.end_of_program import begun

        job = self._submit(job_name)
        if read(self._values, options.ATTACHED):
            begun(job)
        return JobClient(job)

    def get_execution_plan(self) -> str:
        """The plan as JSON: operators and the streams between them."""
        from flinkpy.graph.plan import plan_json

        return plan_json(self._stream_graph(None))

    def close(self) -> None:
        """Forgets what was defined and not executed."""
        self._transformations.clear()

    def _refuse_without_uid(self, graph: StreamGraph) -> None:
        nameless = [node for node in graph.nodes.values() if node.uid is None and node.uid_hash is None]
        if nameless:
            raise refuse(f"{nameless[0].label} has no uid, and disable_auto_generated_uids() asks for one: call uid(...) on it")

    def _submit(self, job_name: str | None) -> Any:
        if job_name is not None and not isinstance(job_name, str):
            raise refuse(f"a job's name is text, this is {job_name!r:.80}")
        graph = self._stream_graph(job_name)
        if not read(self._values, kept_options.AUTO_GENERATED_UIDS):
            self._refuse_without_uid(graph)
        listener = plan_listener()
        if listener is not None:
            listener(graph, dict(self._values))
            raise ProgramAborted("only the plan was wanted")
        from flinkpy.cluster.launch import submit
        from flinkpy.core.ids import IdFactory
        from flinkpy.graph.job_graph_generator import build_job_graph

        values = dict(self._values)
        if graph.runtime_mode is options.RuntimeMode.BATCH:  # a batch job needs none: what fails reads the results before it again
            values.pop(kept_options.CHECKPOINT_INTERVAL.key, None)
        if read(values, kept_options.CHECKPOINT_INTERVAL) is not None:
            from flinkpy.datastream.streams.iterating import refuse_checkpoints

            refuse_checkpoints(self._transformations)
            LOG.warning("checkpoints are configured, but not carried out yet: after a failure this job starts from the beginning")
        self._transformations.clear()  # as in Flink, also when it cannot be submitted: in a notebook the next cell is another program
        with located():
            job_graph = build_job_graph(graph, IdFactory().job_id(), values)
        return submit(job_graph, self._values)

    def _stream_graph(self, job_name: str | None) -> StreamGraph:
        from flinkpy.graph.stream_graph import build_stream_graph

        note_used()
        if not self._transformations:
            raise refuse("no operators were defined since the last execute(): a program needs a source and something that reads it")
        with located():
            return build_stream_graph(
                list(self._transformations), parallelism=self.get_parallelism(), max_parallelism=read(self._values, options.MAX_PARALLELISM),
                chaining=self.is_chaining_enabled(), buffer_timeout_ms=self.get_buffer_timeout(),
                runtime_mode=read(self._values, options.RUNTIME_MODE), batch_form=_batch_form,
                name=job_name or read(self._values, options.PIPELINE_NAME) or DEFAULT_JOB_NAME)

    def _own_host(self) -> str:
        """The address at which workers reach this program."""
        from flinkpy.cluster.launch import choose_target

        return _outward_address() if choose_target(self._values) is options.Target.RAY else "127.0.0.1"

    # -- for the streams ------------------------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _add(self, transformation: Transformation) -> None:
        if read(self._values, options.RUNTIME_MODE) is options.RuntimeMode.STREAMING:  # AUTOMATIC is decided when all sources are known
            with located():
                refuse_added_updates(transformation)
        self._transformations.append(transformation)
        note_defined(transformation.where)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an environment belongs to the program: functions run on the workers, and cannot use it")

    def __repr__(self) -> str:
        return f"<StreamExecutionEnvironment: {len(self._transformations)} operators, parallelism {self.get_parallelism()}>"


def _batch_form(operator: Any) -> Any:
    from flinkpy.operators.batch.batch_forms import batch_form

    return batch_form(operator)


def _outward_address() -> str:
    """This machine's address on the way out; nothing is sent."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # reserved for documentation: nobody has it
            return str(sock.getsockname()[0])
        except OSError:
            return "127.0.0.1"
