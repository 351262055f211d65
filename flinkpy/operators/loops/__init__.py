"""Both ends of a loop, and the way back between them."""
