"""Values that expire: how long they live, and how they are removed."""
