"""State in a form that others read too: a Parquet file for each state of each subtask
(``docs/decisions/canonical-state.md``)."""
