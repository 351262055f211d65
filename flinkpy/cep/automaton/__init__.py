"""The automaton of a pattern: its states, the compiler, and what it means, event by event."""
