"""Loops in the real world: episodes with a known uncertainty, and runs that learn it."""
