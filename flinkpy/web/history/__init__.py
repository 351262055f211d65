"""Jobs that have ended, as files: what their REST routes answer, and the server that shows them."""
