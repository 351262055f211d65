"""Windowed streams: what can be said of windows, and which operator carries a call out."""
