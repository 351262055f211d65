"""The JobMaster and its parts: slots, TaskExecutors, source coordinators, and what it reports of
its job."""
