"""What each edge of a plan carries: which rows are added, updated and deleted, and by which key."""
