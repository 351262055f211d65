"""The TaskExecutor: its slots, and its connection with each job."""
