"""Asynchronous I/O: calls that wait for answers without holding up the stream."""
