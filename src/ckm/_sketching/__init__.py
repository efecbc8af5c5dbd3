"""Equation (3): data -> Sketch."""
