"""Sessions and applications on Ray: how a program finds, starts and ends them and connects to
them."""
