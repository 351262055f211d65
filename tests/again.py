"""Tries the tests that failed in the last run once more, alone: ``python -m tests.again``.

Of 15,000 tests on a machine that others load, one may be too slow. What fails again fails, and more
than a few are never the machine. Each is printed, so that someone looks at it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
AT_MOST = 3


def tried_again(last_failed: Path = LAST_FAILED) -> int:
    """The exit code of the second try: 0 if each of the tests passes alone."""
    failed = sorted(json.loads(last_failed.read_text())) if last_failed.exists() else []
    if not 0 < len(failed) <= AT_MOST:
        print(f"{len(failed)} tests failed: only 1 to {AT_MOST} are tried again")
        return 1
    print("tried again, alone; each of these is to be looked at:", *failed, sep="\n  ", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *failed]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        last_failed.unlink()  # the next run has failures of its own
    return code


if __name__ == "__main__":
    sys.exit(tried_again())
