"""Equation (1): everything that measures squared distances from rows to centroids."""
