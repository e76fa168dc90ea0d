"""Runs experiments: units of work, who computes them, and where they are stored."""
