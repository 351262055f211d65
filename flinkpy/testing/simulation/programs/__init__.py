"""Real programs in the simulated cluster: their sources and sinks, what lies outside of them, and
runs that are disturbed as a seed decides."""
