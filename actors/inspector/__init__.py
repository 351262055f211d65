"""What a process of the cluster tells of itself: its figures, its threads, its logs. Answered
beside the TaskExecutor, never by it."""
