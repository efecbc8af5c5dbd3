"""Differential privacy: exact noise, its shares among parties, and what was spent on which data."""
