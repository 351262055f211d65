"""Windows: which ones a record belongs to, when they are evaluated, what is left out of them, and how they merge."""
