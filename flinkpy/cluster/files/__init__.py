"""The files of a program on their way to its functions: what it imports and unpacks, and what it
registers."""
