"""What a task owns: variables, queues, random streams, and the context of a running step."""
