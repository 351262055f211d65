"""The graphs of the client side: transformations, StreamGraph, JobGraph; and what one subtask is told (the deployment descriptor)."""
