"""Lines from TCP servers, and bytes to them."""
