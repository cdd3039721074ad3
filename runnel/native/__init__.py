"""Optional code in C++, compiled with the package or when it is first needed: kernels, input."""
