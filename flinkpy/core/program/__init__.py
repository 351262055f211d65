"""The user's program: how its code travels, where its lines stand, how it was launched and how it
ends."""
