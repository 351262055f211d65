"""The states that functions hold, over the entries of any backend: plain ones, and ones whose
values expire."""
