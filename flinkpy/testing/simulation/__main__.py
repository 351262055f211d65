"""``python -m flinkpy.testing.simulation --seed 123 --trace``: runs one seed, or many (``--seeds 0:500``), and prints
what happened."""

from __future__ import annotations

import argparse
import logging
import sys

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.testing.simulation.scenario import Scenario
from flinkpy.testing.simulation.seeded_run import SimulationFailure, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m flinkpy.testing.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", default="0:100", help="first:end, without the end")
    parser.add_argument("--trace", action="store_true", help="print every event")
    options = parser.parse_args()
    logging.getLogger("flinkpy").setLevel(logging.CRITICAL)  # lost peers are the rule here
    first, _, end = options.seeds.partition(":")
    seeds = range(options.seed, options.seed + 1) if options.seed is not None else range(int(first), int(end))
    if options.seed is not None:
        print(Scenario.of(options.seed))
    began, failed, events = SYSTEM_CLOCK.monotonic(), 0, 0
    for seed in seeds:
        try:
            report = run_seed(seed, (lambda time, label: print(f"{time:12.6f}  {label}")) if options.trace else None)
        except SimulationFailure as failure:
            failed += 1
            print(f"FAILED {failure}"[: 20_000 if len(seeds) == 1 else 1000])
            continue
        events += report.events
        if len(seeds) == 1:
            print(report)
    took = SYSTEM_CLOCK.monotonic() - began
    print(f"{len(seeds)} seeds, {failed} failed, {took:.1f} s, {len(seeds) / took:.1f} seeds/s, {events / took:,.0f} events/s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
