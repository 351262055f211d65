"""What becomes of a function's results on their way out: private copies, the declared type, and the
loop that emits them while the function still yields."""
