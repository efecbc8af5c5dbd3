"""Equation (1): all that measures squared distances from rows to centroids."""
