"""From episodes to statements: groups, intervals, claims and their verdicts."""
