"""GROUP BY without windows in STREAMING: results that change while rows come and go."""
