"""What the waiting program shows of a job: progress, pictures, printed lines, missing slots."""
