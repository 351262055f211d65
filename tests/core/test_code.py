"""Which modules travel with a program's functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flinkpy.common import types
from flinkpy.core.program.code import dumps, loads

PROGRAM = """
import sys
from company.common import units
from flinkpy.core.program.code import dumps, loads

data = dumps(units.in_metres)
del sys.modules["company.common.units"], sys.modules["company.common"], sys.modules["company"].common
sys.path[:] = [path for path in sys.path if path != {folder!r}]
print(loads(data)(2))
"""


def test_of_a_program_that_is_a_module_of_a_package_all_modules_of_the_package_travel(
    tmp_path: Path,
) -> None:
    for name in ("company", "company/jobs", "company/common"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "company/common/units.py").write_text(
        "def in_metres(feet):\n    return feet * 0.3048\n"
    )
    (tmp_path / "company/jobs/words.py").write_text(PROGRAM.format(folder=str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-m", "company.jobs.words"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("0.6096\n", "")


CACHED = """
import functools, math, sys
from beside import doubled
from flinkpy.core.program.code import dumps

@functools.lru_cache(maxsize=100)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

class Names:
    @staticmethod
    @functools.cache
    def of(n):
        return f"<{n}>"

    @functools.cached_property
    def known(self):
        return ["once"]

names = Names()
root = functools.lru_cache(math.sqrt)
fibonacci(90)
sys.stdout.buffer.write(dumps(lambda n: (Names.of(fibonacci(n)), doubled(n), root(n), names.known is names.known, fibonacci.cache_info())))
"""
ELSEWHERE = (
    "import sys; from flinkpy.core.program.code import loads; "
    "print(loads(sys.stdin.buffer.read())(9))"
)


def test_functions_under_a_cache_travel_too_and_begin_with_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "beside.py").write_text(
        "import functools\n\n@functools.lru_cache\ndef doubled(n):\n    return 2 * n\n"
    )
    (tmp_path / "job.py").write_text(CACHED)
    data = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, capture_output=True, check=True, timeout=30
    ).stdout
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        cwd=tmp_path / "elsewhere",
        input=data,
        capture_output=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == (
        b"('<34>', 18, 3.0, True, CacheInfo(hits=7, misses=10, maxsize=100, currsize=10))\n",
        b"",
    )


def test_a_cached_function_of_an_installed_package_travels_by_name() -> None:
    assert loads(dumps(types._row_class)) is types._row_class
