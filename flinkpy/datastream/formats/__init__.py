"""Formats of messages and files, under PyFlink's module paths."""
