"""Benchmarks: measurements side by side with other libraries, run as modules from the repository
root (`python -m benchmarks.kernel`). README.md lists them.
"""
