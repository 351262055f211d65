"""Folders that options name and nobody can ever write to: the job fails at its start, by the
option's name, and does not restart for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flinkpy.cluster.session import SessionConfig
from flinkpy.cluster.session_folders import check_session_folders
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.core.errors import (
    ConfigurationError,
    FlinkpyError,
    JobExecutionError,
    ResourceUnavailableError,
)
from flinkpy.core.files.file_systems import is_lasting
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.runtime.local_folders import check_local_folders
from flinkpy.state.checkpoints.trying_out import check_writable
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.simulated_file_store import StorageFault
from flinkpy.testing.simulation.simulated_jobs import JobBuilder

pytestmark = pytest.mark.finding("newcomers 3")

NOWHERE = "/proc/nope"  # not even root may make it
JOB = JobId("job")


def run(tmp_path: Path, **options: str) -> None:
    """A job with checkpoints, which says that it has read a record."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure({"execution.checkpointing.interval": "300 ms", **options})
    env.from_collection([1]).map(lambda record: (tmp_path / "done").write_text(str(record))).print()
    env.execute()


@pytest.mark.parametrize(
    "make",
    [
        lambda tmp: NOWHERE,
        lambda tmp: tmp / "file",
        lambda tmp: tmp / "file" / "in it",
        lambda tmp: "foo://x/y",
    ],
)
def test_a_job_whose_checkpoints_have_no_place_fails_before_its_first_record(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    (tmp_path / "file").touch()
    message = r"failed: option execution\.checkpointing\.dir: no checkpoint can be written there: "
    with pytest.raises(JobExecutionError, match=message):
        run(tmp_path, **{"execution.checkpointing.dir": str(make(tmp_path))})
    assert not (tmp_path / "done").exists()


def simulated(fails: Callable[[float], bool]) -> tuple[JobState, float]:
    """A job with checkpoints, whose store fails at these times: how it ends, and when."""
    cluster = SimulatedCluster(3)
    now = cluster.client_service.clock.monotonic
    start = now()
    cluster.files.faults = lambda step: StorageFault("nothing") if fails(now() - start) else None
    builder = JobBuilder(
        JOB,
        configuration={
            "execution.checkpointing.interval": "5 s",
            "execution.checkpointing.dir": DIRECTORY,
        },
    )
    builder.vertex(1, [], TaskBehaviour(run_s=0.5))
    client = cluster.result(cluster.client())
    cluster.result(client.submit_job(builder.build()))
    while (result := cluster.result(client.request_job_result(JOB, 9.0))) is None:
        pass
    return result.state, now() - start


def test_a_store_that_is_away_for_a_moment_holds_the_start_up_and_one_that_stays_away_ends_it() -> (
    None
):
    assert simulated(lambda at: at < 4.0)[0] is JobState.FINISHED
    state, took = simulated(lambda at: True)
    assert state is JobState.FAILED
    assert 8.0 < took < 30.0


def test_what_an_object_store_says_for_good_is_not_asked_again() -> None:
    said = (
        "When initiating multiple part upload for key 'x' in bucket 'b': AWS Error "
        "NO_SUCH_BUCKET during CreateMultipartUpload operation"
    )
    assert is_lasting(OSError(said))
    assert is_lasting(OSError("AWS Error ACCESS_DENIED during PutObject operation"))
    assert not is_lasting(OSError("AWS Error NETWORK_CONNECTION during HeadBucket operation"))


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("io.tmp.dirs", {}),
        ("state.backend.rocksdb.localdir", {"state.backend.type": "rocksdb"}),
        (
            "execution.checkpointing.local-backup.dirs",
            {"execution.checkpointing.local-backup.enabled": "true"},
        ),
    ],
)
def test_a_worker_s_folder_that_cannot_be_made_ends_the_job_by_its_option(
    key: str, more: dict[str, str]
) -> None:
    with pytest.raises(
        ConfigurationError,
        match=f"option {key}: nothing can be written to {NOWHERE} on this worker: No such file",
    ):
        check_local_folders({key: NOWHERE, **more}, has_run=False)
    # a disk that went bad: the job restarts, perhaps elsewhere
    with pytest.raises(ResourceUnavailableError, match=key):
        check_local_folders({key: NOWHERE, **more}, has_run=True)


def test_a_worker_s_folders_are_made_where_they_lack_and_asked_only_if_they_are_used(
    tmp_path: Path,
) -> None:
    check_local_folders(
        {"io.tmp.dirs": str(tmp_path / "new" / "one"), "state.backend.rocksdb.localdir": NOWHERE},
        has_run=False,
    )
    assert list((tmp_path / "new" / "one").iterdir()) == []


def test_a_job_asks_for_its_folders_before_its_first_record(tmp_path: Path) -> None:
    with pytest.raises(
        JobExecutionError, match=r"failed: option state\.backend\.rocksdb\.localdir: "
    ):
        run(
            tmp_path, **{"state.backend.rocksdb.localdir": NOWHERE, "state.backend.type": "rocksdb"}
        )
    assert not (tmp_path / "done").exists()


def test_a_session_that_could_not_keep_its_jobs_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"option jobmanager\.archive\.fs\.dir: nothing can be written to /proc/nope: ",
    ):
        run(tmp_path, **{"jobmanager.archive.fs.dir": NOWHERE})
    with pytest.raises(
        ConfigurationError,
        match=r"option high-availability\.storageDir: nothing can be written to /proc/nope: ",
    ):
        check_session_folders(SessionConfig.of({}), HighAvailability(NOWHERE, "default"))
    check_session_folders(
        SessionConfig.of({"jobmanager.archive.fs.dir": str(tmp_path)}),
        HighAvailability(str(tmp_path / "ha"), "default"),
    )


def test_credentials_of_a_place_are_not_shown() -> None:
    with pytest.raises(ConfigurationError) as told:
        check_writable("some.key", "foo://key:secret@lake/checkpoints")
    assert "secret" not in str(told.value)


def test_a_file_sink_whose_folder_cannot_be_made_ends_the_job() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure({"execution.checkpointing.interval": "300 ms"})
    env.from_collection(["a"]).sink_to(FileSink(NOWHERE))
    with pytest.raises(
        FlinkpyError, match="the file sink cannot write to /proc/nope: No such file or directory"
    ):
        env.execute()


def test_an_actor_on_ray_that_did_not_start_for_an_option_is_told_by_that_option() -> None:
    from flinkpy.cluster.ray.workers import why_not_started

    of_ray = (
        "The actor died because of an error in its creation task\n  File "
        "x\nflinkpy.core.errors.ConfigurationError: option a.b: it is wrong"
    )
    assert why_not_started(Exception(of_ray)) == "option a.b: it is wrong"
    assert why_not_started(Exception("\nRay has ended\nmore")) == "Ray has ended"
