"""Windowed streams: the settings of windows, and the choice of the operator that runs a call."""
