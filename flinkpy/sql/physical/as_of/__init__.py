"""Joins with a table as it is at a time: FOR SYSTEM_TIME AS OF."""
