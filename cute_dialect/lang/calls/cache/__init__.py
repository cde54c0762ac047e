"""Caches of calls, in memory and on disk, and the dependencies that they check."""
