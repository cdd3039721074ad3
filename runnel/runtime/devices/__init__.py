"""The devices of a session: what there is, how fast it is, what fits, how values move."""
