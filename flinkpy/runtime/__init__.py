"""Running one attempt of one subtask: the task's life, the stream task's loop, its inputs, and the
slots' loops that run them."""
