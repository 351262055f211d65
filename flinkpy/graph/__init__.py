"""The graphs of the client side: transformations, StreamGraph, JobGraph; and the deployment descriptor of one subtask."""
