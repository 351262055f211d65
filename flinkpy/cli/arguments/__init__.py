"""How arguments are read, and the options of those commands that run a program."""
