"""``python -m flinkpy.testing.simulation --seed 123 --trace``: runs one seed, or many (``--seeds
0:500``), and prints what happened. With ``--programs`` real programs run, without it stand-ins for
tasks. ``-j 2`` uses two processes. ``--until-failure`` ends with the first seed that fails."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.testing.simulation.programs.program_run import run_program_seed
from flinkpy.testing.simulation.programs.program_scenario import ProgramScenario
from flinkpy.testing.simulation.programs.programs import DRAWN_PROGRAMS, PROGRAMS
from flinkpy.testing.simulation.scenario import Scenario
from flinkpy.testing.simulation.seeded_run import SimulationFailure, run_seed

Trace = Callable[[float, str], None]


def main() -> int:
    options = _parser().parse_args()
    programs: tuple[str, ...] | None = (
        None if options.programs is None else tuple(options.programs or DRAWN_PROGRAMS)
    )
    if options.seed is not None:
        return _one(
            options.seed,
            programs,
            (lambda time, label: print(f"{time:12.6f}  {label}")) if options.trace else None,
        )
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end))
    began, failed, events, played = SYSTEM_CLOCK.monotonic(), 0, 0, 0
    with ProcessPoolExecutor(options.processes) as pool:
        for happened, failure in pool.map(partial(_play, programs), seeds, chunksize=5):
            events, played = events + happened, played + 1
            if failure is not None:
                failed += 1
                print(f"FAILED {failure}"[:1000], flush=True)
                if options.until_failure:
                    pool.shutdown(cancel_futures=True)
                    break
    took = SYSTEM_CLOCK.monotonic() - began
    print(
        f"{played} seeds, {failed} failed, {took:.1f} s, {played / took:.1f} seeds/s, "
        f"{events / took:,.0f} events/s"
    )
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flinkpy.testing.simulation", description=__doc__
    )
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", default="0:100", help="first:end, without the end")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every event")
    parser.add_argument(
        "--programs",
        nargs="*",
        metavar="NAME",
        help=f"real programs: {', '.join(PROGRAMS)}; if none is named, all but the last two",
    )
    parser.add_argument(
        "--until-failure",
        action="store_true",
        help="with --seeds: no more after the first that fails",
    )
    parser.add_argument(
        "-j", "--processes", type=int, default=1, help="how many processes play seeds"
    )
    return parser


def _one(seed: int, programs: tuple[str, ...] | None, trace: Trace | None) -> int:
    logging.getLogger("flinkpy").setLevel(logging.CRITICAL)  # lost peers are the rule here
    print(Scenario.of(seed) if programs is None else ProgramScenario.of(seed, programs))
    try:
        print(
            run_seed(seed, trace) if programs is None else run_program_seed(seed, programs, trace)
        )
    except SimulationFailure as failure:
        print(f"FAILED {failure}"[:20_000])
        return 1
    return 0


def _play(programs: tuple[str, ...] | None, seed: int) -> tuple[int, str | None]:
    """How many events happened, and what went wrong."""
    logging.getLogger("flinkpy").setLevel(logging.CRITICAL)
    try:
        return (
            run_seed(seed) if programs is None else run_program_seed(seed, programs)
        ).events, None
    except SimulationFailure as failure:
        return 0, str(failure)
    except Exception as error:
        return 0, f"seed {seed}: {error!r}"


if __name__ == "__main__":
    sys.exit(main())
