"""Which kinds of rows the nodes of a plan give."""
