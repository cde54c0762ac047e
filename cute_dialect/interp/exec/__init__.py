"""Launches: programs, the choice of blocks, and schedules."""
