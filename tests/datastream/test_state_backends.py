"""Choosing where keyed state lives, and jobs that give the same results whichever it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import ConfigurationError, FlinkpyError, ProgramError
from flinkpy.datastream import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    PredefinedOptions,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


class Remember(KeyedProcessFunction):
    """Value, list and map state of every key, and a timer at the end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count: Any = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen: Any = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.by: Any = runtime_context.get_map_state(
            MapStateDescriptor("by", Types.STRING(), Types.LONG())
        )

    def process_element(self, value: tuple[str, int], ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(value[1])
        self.by.put("odd" if value[1] % 2 else "even", value[1])
        yield value[0], self.count.value(), sum(self.seen.get()), sorted(self.by.items())


def results(env: StreamExecutionEnvironment) -> list[Any]:
    stream = env.from_collection([(f"k{number % 3}", number) for number in range(20)]).key_by(
        lambda pair: pair[0]
    )
    with stream.process(Remember()).execute_and_collect() as found:
        return list(found)


def test_a_job_gives_the_same_with_both_backends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    expected = results(
        StreamExecutionEnvironment.get_execution_environment().set_state_backend(
            HashMapStateBackend()
        )
    )
    assert len(expected) == 20
    env = StreamExecutionEnvironment.get_execution_environment(
        {"io.tmp.dirs": str(tmp_path), "state.backend.type": "rocksdb"}
    )
    assert results(env) == expected
    assert list(tmp_path.iterdir()) == []


def test_the_database_is_deleted_after_a_failure_too(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    env = StreamExecutionEnvironment.get_execution_environment()
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path / "states"))
    env.set_state_backend(backend)

    def fail(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
        raise ValueError(f"databases: {len(list((tmp_path / 'states').iterdir()))}")

    env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0]).reduce(fail).print()
    with pytest.raises(FlinkpyError, match="databases: 1"):
        env.execute()
    assert list((tmp_path / "states").iterdir()) == []


def test_options_and_backends_are_two_spellings_of_one_choice() -> None:
    pytest.importorskip("rocksdict")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    env.configure({"state.backend.type": "rocksdb", "state.backend.rocksdb.localdir": "/somewhere"})
    chosen = env.get_state_backend()
    assert isinstance(chosen, EmbeddedRocksDBStateBackend)
    assert chosen.get_db_storage_paths() == ["/somewhere"]
    assert (
        env.set_state_backend(HashMapStateBackend()).get_state_backend().kind().value == "hashmap"
    )


@pytest.mark.finding("pyflink rocksdb")
def test_the_rocksdb_backend_takes_what_pyflinks_takes_and_shows_it_again() -> None:
    pytest.importorskip("rocksdict")
    backend = EmbeddedRocksDBStateBackend(True)
    assert EmbeddedRocksDBStateBackend(
        enable_incremental_checkpointing=True
    ).is_incremental_checkpoints_enabled()
    assert not EmbeddedRocksDBStateBackend().is_incremental_checkpoints_enabled()
    backend.set_db_storage_paths("/a", "/b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_options("org.example.Factory")
    backend.set_number_of_transfer_threads(8)
    env = StreamExecutionEnvironment.get_execution_environment().set_state_backend(backend)
    for each in (backend, env.get_state_backend()):
        assert isinstance(each, EmbeddedRocksDBStateBackend)
        assert each.is_incremental_checkpoints_enabled()
        assert each.get_db_storage_paths() == ["/a", "/b"]
        assert each.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
        assert each.get_options() == "org.example.Factory"
        assert each.get_number_of_transfer_threads() == 8


@pytest.mark.finding("pyflink rocksdb")
def test_the_databases_of_a_process_take_its_folders_in_turn(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    env = StreamExecutionEnvironment.get_execution_environment()
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path / "a"), str(tmp_path / "b"))
    env.set_state_backend(backend)
    pairs = env.from_collection([("a", 1), ("a", 2)])
    with (
        pairs.key_by(lambda pair: pair[0])
        .process(Remember())
        .key_by(lambda seen: seen[0])
        .process(Remember())
        .execute_and_collect() as found
    ):
        assert len(list(found)) == 2
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["a", "b"]


def test_mistakes_are_refused_when_the_program_is_built() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    wrong: Any = "rocksdb"
    with pytest.raises(
        ProgramError, match=r"takes HashMapStateBackend\(\) or EmbeddedRocksDBStateBackend\(\)"
    ):
        env.set_state_backend(wrong)
    with pytest.raises(ConfigurationError, match="none of hashmap, rocksdb"):
        env.configure({"state.backend.type": "filesystem"})
    backend: Any = EmbeddedRocksDBStateBackend()
    calls: list[tuple[Any, Any, str]] = [
        (backend.set_db_storage_paths, "", "one folder or several"),
        (backend.set_predefined_options, "DEFAULT", "one of PredefinedOptions"),
        (backend.set_options, None, "the name of a class"),
        (backend.set_number_of_transfer_threads, 0, "1 or more"),
        (EmbeddedRocksDBStateBackend, "yes", "True or False"),
    ]
    for call, given, told in calls:
        with pytest.raises(ProgramError, match=told):
            call(given)
    with pytest.raises(
        ConfigurationError, match="predefined-options: 'FAST' is none of DEFAULT, SPINNING"
    ):
        env.configure({"state.backend.rocksdb.predefined-options": "FAST"})


def test_without_the_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(ProgramError, match=r"pip install 'flinkpy\[rocksdb\]'"):
        StreamExecutionEnvironment.get_execution_environment().set_state_backend(
            EmbeddedRocksDBStateBackend()
        )
