"""Sends results back to the program that runs the job."""
