"""Operators: their lifecycle, the chain that runs them, and the stateless, keyed and source
operators themselves."""
