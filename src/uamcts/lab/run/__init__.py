"""From declarations to stored episodes: units of work, who computes them, and where they are kept."""
