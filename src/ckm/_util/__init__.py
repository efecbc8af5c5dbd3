"""Helpers without mathematics that every package uses."""
