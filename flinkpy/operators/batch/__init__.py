"""The forms operators take in a batch job."""
