"""The graphs that the client builds: transformations, StreamGraph, JobGraph; and the deployment
descriptor of one subtask."""
