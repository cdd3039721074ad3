"""Programs that compute the same, better: stable, smaller, in another precision."""
