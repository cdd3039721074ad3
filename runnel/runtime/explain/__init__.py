"""For people: where everything is and why, and how long it took."""
