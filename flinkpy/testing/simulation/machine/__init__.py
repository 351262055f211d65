"""A machine in virtual time: loops that turn when a seed decides, connections that cut, delay and
lose bytes, a thread for files that hangs."""
