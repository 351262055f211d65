"""Files of certificates, which several options name."""
