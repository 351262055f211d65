"""The command line: run, list, cancel, info, options, stop-cluster. Its messages are short and say what to change."""
