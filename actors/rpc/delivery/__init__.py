"""How messages are delivered: envelopes and their bytes, asks that wait for an answer, couriers
that repeat, and the order of arrival."""
