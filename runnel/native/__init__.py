"""Code in C++ that XLA calls: optional, compiled on the user's machine when it is first needed."""
