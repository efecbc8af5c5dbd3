"""Kernels on the CPU: the specified arithmetic as LLVM vectors."""
