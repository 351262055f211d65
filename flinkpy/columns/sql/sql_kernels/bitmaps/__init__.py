"""Bitmaps over whole columns."""
