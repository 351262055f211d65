"""Families of nodes: a module has the operators of some nodes, and is imported with the first."""
