"""What a container leaves of the machine's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.runtime.memory.machine_memory import container_limit, machine_memory

MB = 1 << 20
NONE_OF_V1 = 9223372036854771712
V1 = "12:cpu,cpuacct:/a\n4:memory:/a/b\n0::/c\n"


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "104857600"}, 100 * MB),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "62914560"}, 60 * MB),
        ("0::/a/b\n", {"a/b/memory.max": "62914560", "a/memory.max": "104857600"}, 60 * MB),
        ("0::/a\n", {"a/memory.max": "max"}, None),
        ("0::/on/the/host\n", {"memory.max": "62914560"}, 60 * MB),
        (V1, {"memory/a/b/memory.limit_in_bytes": "62914560"}, 60 * MB),
        (V1, {"memory/memory.limit_in_bytes": "62914560"}, 60 * MB),
        (V1, {"memory/a/b/memory.limit_in_bytes": str(NONE_OF_V1)}, None),
        (V1, {"c/memory.max": "62914560", "memory/a/memory.limit_in_bytes": "104857600"}, 60 * MB),
        ("", {"memory.max": "62914560"}, None),
    ],
)
def test_the_least_limit_of_all_groups_counts(
    groups: str, files: dict[str, str], limit: int | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "cgroup").write_text(groups)
    assert container_limit(tmp_path / "cgroup", tmp_path / "fs") == limit


def test_no_system_that_tells_nothing_limits_anything(tmp_path: Path) -> None:
    assert container_limit(tmp_path / "absent", tmp_path) is None
    assert machine_memory() > 0
