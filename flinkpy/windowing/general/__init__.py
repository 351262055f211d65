"""The window operator for any assigner, trigger, evictor and function."""
