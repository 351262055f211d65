"""From a physical plan to the transformations of a program."""
