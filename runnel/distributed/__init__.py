"""The runtime over processes: tasks, a master, workers, and what they say to each other."""
