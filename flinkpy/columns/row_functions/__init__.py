"""What the functions of expressions mean for one row, in plain Python, by topic.
``flinkpy.columns.rowwise`` joins them."""
