"""The package as users get it: every folder listed, every link guarded, one copy of every class."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import flinkpy

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKED = ("actors", "network", "scheduler")


def folders_with_code() -> set[str]:
    tops = {"flinkpy": ROOT / "flinkpy", **{f"flinkpy.{name}": ROOT / name for name in LINKED}}
    found = set()
    for package, top in tops.items():
        for init in top.rglob("__init__.py"):
            inner = init.parent.relative_to(top)
            if not any((top / part).is_symlink() for part in inner.parts[:1]):
                found.add(".".join([package, *inner.parts]))
    return found


def folders_of_the_page() -> set[str]:
    page = ROOT / "flinkpy" / "web" / "page"
    found = [page, *(each for each in page.rglob("*") if each.is_dir())]
    return {".".join(each.relative_to(ROOT).parts) for each in found}


def test_every_package_is_listed_for_the_wheel() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    assert listed == folders_with_code() | folders_of_the_page()


def test_the_version_is_the_same_wherever_it_stands() -> None:
    assert PROJECT["project"]["version"] == flinkpy.__version__


@pytest.mark.parametrize("name", LINKED)
def test_the_top_level_folders_are_not_importable_by_their_bare_names(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True
    )
    assert f"import this package as flinkpy.{name}" in run.stderr


@pytest.mark.parametrize("name", LINKED)
def test_the_links_are_relative_so_that_they_survive_a_clone(name: str) -> None:
    assert (ROOT / "flinkpy" / name).readlink() == Path("..") / name


def test_a_users_network_py_beside_the_job_does_not_get_in_the_way(tmp_path: Path) -> None:
    for name in LINKED:
        (tmp_path / f"{name}.py").write_text("raise ImportError('the user file was imported')")
    code = "import flinkpy.network.port, flinkpy.scheduler.protocol, flinkpy.actors.gateways"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    "module", ["flinkpy.datastream", "flinkpy.connectors.sources", "flinkpy.connectors.sinks"]
)
def test_importing_the_api_pulls_in_neither_ray_nor_arrow_nor_numpy(module: str) -> None:
    code = (
        f"import sys, {module}; print([m for m in ('ray', 'pyarrow', 'pandas', 'numpy', "
        "'pyspark') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# What only tasks need, or few programs, and libraries that they load.
IMPORTED_LATE = (
    "asyncio",
    "click",
    "concurrent.futures",
    "email",
    "hashlib",
    "importlib.metadata",
    "statistics",
    "yaml",
    "flinkpy.actors",
    "flinkpy.cluster",
    "flinkpy.connectors.files",
    "flinkpy.network",
    "flinkpy.operators.async_io.async_wait",
    "flinkpy.operators.guarding.with_policy",
    "flinkpy.runtime",
    "flinkpy.scheduler",
    "flinkpy.spark",
    "flinkpy.state.heap.heap_backend",
    "flinkpy.web",
)


def test_importing_the_api_loads_nothing_that_only_tasks_or_few_programs_need() -> None:
    """Every job waits for this import."""
    code = f"import sys, flinkpy.datastream; print(sys.modules.keys() & {set(IMPORTED_LATE)!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


# What a query of BATCH without joins, windows, groups, an order or a call of a function does not need.
NOT_FOR_SELECT_1 = (
    "asyncio",
    "pandas",
    "ray",
    "flinkpy.cli.sql_client.sql_prompt",
    "flinkpy.columns.sql.sql_kernels.sql_kernel_table",
    "flinkpy.columns.sql.sql_meanings.sql_meaning_table",
    "flinkpy.connectors.files",
    "flinkpy.connectors.kafka",
    "flinkpy.relational.aggregates",
    "flinkpy.relational.groups",
    "flinkpy.relational.in_time",
    "flinkpy.relational.joins",
    "flinkpy.relational.ordering",
    "flinkpy.relational.ranks",
    "flinkpy.relational.sinks",
    "flinkpy.relational.windows",
    "flinkpy.spark",
    "flinkpy.sql.catalog.ddl_execution",
    "flinkpy.sql.functions.built_in.chapters",
    "flinkpy.sql.parsing.definitions",
    "flinkpy.sql.plans.streaming_plans",
    "flinkpy.web",
    "flinkpy.windowing.slices",
)


def test_a_small_query_loads_the_operators_of_its_own_nodes_only() -> None:
    """``flinkpy sql -e`` waits for these imports."""
    code = (
        "import sys; from flinkpy.cli.main import commands; "
        "commands(['sql', '-e', 'SELECT 1'], standalone_mode=False)"
    )
    after = f"print(sys.modules.keys() & {set(NOT_FOR_SELECT_1)!r})"
    code = f"import sys, atexit; atexit.register(lambda: {after}); {code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "set()"


@pytest.mark.wide
@pytest.mark.slow
def test_the_wheel_holds_every_package_the_page_and_the_type_marker(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "flinkpy/py.typed" in names
    for package in folders_with_code():
        assert package.replace(".", "/") + "/__init__.py" in names
    page = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "flinkpy" / "web" / "page").rglob("*")
        if path.is_file()
    }
    assert (
        {"flinkpy/web/page/index.html", "flinkpy/web/page/vendor/LICENSE-dagre.txt"}
        <= page
        <= set(names)
    )
    assert not [name for name in names if name.startswith(LINKED)]
