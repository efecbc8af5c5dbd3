"""The nouns: frequencies, tally, pool and sketch, all frozen values."""
