"""SESSION: rows and aggregates of keys whose rows follow each other within a gap."""
