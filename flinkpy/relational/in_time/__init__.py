"""Operators of STREAMING whose rows wait for the watermark, or are taken in the order in which they
come: sorting, OVER, first rows."""
