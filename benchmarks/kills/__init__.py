"""A job whose processes are killed every few seconds, and whether its output is that of an
undisturbed run."""
