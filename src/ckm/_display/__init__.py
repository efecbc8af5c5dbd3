"""Display of results: tables and plots."""
