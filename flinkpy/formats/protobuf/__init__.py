"""Protobuf messages: rows, columns, and objects of generated classes."""
