"""What steps share beside variables: queues, barriers, staging areas, accumulators.

Each is a plain state machine behind one lock. An operation on it either returns its result at once
or leaves a :class:`~runnel.queues.waiter.Waiter` in a list, in order of arrival; whoever makes the
result possible hands it to the waiter. Nothing here blocks, starts a thread or knows of sessions.
"""
