"""Equation (4): Sketch -> Solution."""
