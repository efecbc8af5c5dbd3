"""The values of the library, all frozen: frequencies, tally, pool, sketch; and their files."""
