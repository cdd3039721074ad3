"""A prepared step and what runs it."""
