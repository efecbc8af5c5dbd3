"""Runners feed chunks to a kernel and merge what comes back. `local` uses the threads of this machine."""
