"""What reviewers caught flinkpy at, program by program: ``known`` names each, tests marked
``finding("…")`` hold it right."""
