"""The lab at a terminal: limits of options, progress, results, boards, and runs to watch."""
