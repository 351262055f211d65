"""``python -m benchmarks [NAME ...] [--quick] [--save FILE]``: runs all benchmarks, or those
named."""

from __future__ import annotations

import argparse
import importlib

from benchmarks.harness import Comparison, save

ALL = (
    "rows",
    "keyed",
    "chain_length",
    "columns",
    "two_processes",
    "two_processes_sql",
    "tls",
    "latency",
    "stalled_sink",
    "keys",
    "keyed_state",
    "state_memory",
    "larger_than_memory",
    "limited_worker",
    "metrics_cost",
    "watch_cost",
    "checkpoint_cost",
    "incremental_checkpoints",
    "unaligned",
    "recovery",
    "large_cluster",
    "restore",
    "windows",
    "window_phases",
    "joins",
    "cold_start",
    "in_memory",
    "files",
    "spark_bridge",
    "formats",
    "kafka_source",
    "kafka_sink",
    "kafka_to_kafka",
    "rest_load",
    "waiting",
    "sql_kernels",
    "tpch",
    "spilling",
    "spilled_join",
    "nexmark_sql",
    "against_flink_sql",
    "changing_ranks",
    "group_aggregates",
    "aggregate_latency",
    "dynamic_patterns",
    "regular_joins",
    "join_state",
    "patterns",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Each prints its figures beside a bare loop's, and the ratio.",
    )
    parser.add_argument("names", nargs="*", choices=[[], *ALL], help="which (default: all)")
    parser.add_argument("--quick", action="store_true", help="small inputs: a smoke test")
    parser.add_argument(
        "--seconds", type=float, help="how long larger_than_memory and limited_worker take"
    )
    parser.add_argument("--megabytes", type=float, help="how much state is made")
    parser.add_argument("--payload", type=int, help="characters that each of its records carries")
    parser.add_argument("--size", help="how large the worker of limited_worker may be")
    parser.add_argument("--shape", help="which shape of limited_worker (default: all)")
    parser.add_argument("--fails", action="store_true", help="its job fails once")
    parser.add_argument("--without-hashmap", action="store_true", help="not with plain memory")
    parser.add_argument("--managed", type=float, help="megabytes that its databases may have")
    parser.add_argument("--objects", type=float, help="megabytes of objects beside them")
    parser.add_argument("--save", metavar="FILE", help="append the results as JSON lines")
    arguments = parser.parse_args()
    for name in arguments.names or ALL:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"-- {name}: {(module.__doc__ or name).splitlines()[0]}", flush=True)
        results: list[Comparison] = module.main()
        save(results, arguments.save)


if __name__ == "__main__":
    main()
