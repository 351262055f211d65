"""For tests: the simulated cluster, and a reactor that is stepped by hand."""
