"""Patterns that come, change and go while a job runs: their versions, the conditions they share,
and the operator."""
