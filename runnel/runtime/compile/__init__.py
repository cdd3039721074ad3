"""The compiled tier: segments traced with jax.numpy, one executable each."""
