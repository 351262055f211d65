"""Which modules travel with a program's functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from company.common import units
from flinkpy.core.code import dumps, loads

data = dumps(units.in_metres)
del sys.modules["company.common.units"], sys.modules["company.common"], sys.modules["company"].common
sys.path[:] = [path for path in sys.path if path != {folder!r}]
print(loads(data)(2))
"""


def test_of_a_program_that_is_a_module_of_a_package_all_modules_of_the_package_travel(tmp_path: Path) -> None:
    for name in ("company", "company/jobs", "company/common"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "company/common/units.py").write_text("def in_metres(feet):\n    return feet * 0.3048\n")
    (tmp_path / "company/jobs/words.py").write_text(PROGRAM.format(folder=str(tmp_path)))
    done = subprocess.run([sys.executable, "-m", "company.jobs.words"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("0.6096\n", "")
