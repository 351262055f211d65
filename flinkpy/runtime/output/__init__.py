"""What tasks print and log, on its way to the waiting program."""
