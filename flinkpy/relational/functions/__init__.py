"""Functions that users write: what they derive from, and how operators call them."""
