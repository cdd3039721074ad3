"""A prepared step, and the code that runs it."""
