"""The command line: run, list, cancel, info, options, session. Its messages are short and say what
to change."""
