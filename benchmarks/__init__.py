"""Benchmarks: each runs flinkpy and a bare Python loop with the same work in turn, and prints the
ratio."""
