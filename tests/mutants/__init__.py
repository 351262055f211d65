"""Rules that matter, each broken once by hand, and the tests that must notice."""
