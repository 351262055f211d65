"""Options: the schema that parses them, and what is declared, layer by layer."""
