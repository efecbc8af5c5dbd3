"""Kernels on a GPU, in Triton."""
