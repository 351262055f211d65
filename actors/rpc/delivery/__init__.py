"""How messages get across: envelopes and their bytes, asks that wait for an answer, couriers that repeat, and the order in which messages arrive."""
