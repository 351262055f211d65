"""Tests of flinkpy.state_processor."""
