"""The commands and their options, in groups. Each is carried out by a module of its own."""
