"""Flow control: segments, credits, and how large a batch is."""
