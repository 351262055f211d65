"""The methods of expressions by topic; ``flinkpy.columns.expression`` joins them."""
