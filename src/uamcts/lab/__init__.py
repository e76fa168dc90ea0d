"""The lab: declares experiments, runs them, analyses the results and writes reports."""
