"""Benchmarks: each compares flinkpy with a bare Python loop doing the same work, in one run, and prints the ratio."""
