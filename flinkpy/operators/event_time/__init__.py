"""Event time: timestamps, watermarks, late records, latency."""
