"""From episodes to conclusions: groups, intervals, claims and their verdicts."""
