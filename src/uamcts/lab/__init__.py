"""Experiments: many runs, what came of them, and what it means."""
