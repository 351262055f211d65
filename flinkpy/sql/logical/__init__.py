"""The logical plan: what a statement asks for, with names resolved and every type known."""
