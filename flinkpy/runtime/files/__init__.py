"""Files that a program registered for its functions, on their way to where the functions run."""
