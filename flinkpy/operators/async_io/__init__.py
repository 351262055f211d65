"""Asynchronous I/O: calls that wait without holding the stream up."""
