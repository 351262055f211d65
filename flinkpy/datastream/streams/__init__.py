"""The recorded program and its streams: rows or columns, and the settings of operators."""
