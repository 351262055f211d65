"""The RPC service of simulated processes: virtual time, and a network that loses, delays and
doubles."""
