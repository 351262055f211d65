"""Kernels: how the functions of expressions are computed for whole columns."""
