"""For people: where everything runs and why."""
