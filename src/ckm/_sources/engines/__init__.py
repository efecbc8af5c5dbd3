"""Dask, Spark and Ray: rows that an engine holds in partitions."""
