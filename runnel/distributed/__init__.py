"""The runtime over processes: tasks, a master, workers, and their messages."""
