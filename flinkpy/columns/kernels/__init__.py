"""Kernels: how each function of expressions is computed for whole columns."""
