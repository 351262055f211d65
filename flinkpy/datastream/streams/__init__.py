"""The program and its streams as they are recorded: rows or columns, and the settings of operators."""
