"""``flinkpy sql``: statements from a prompt, a file or the command line."""
