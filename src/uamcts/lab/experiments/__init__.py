"""Declarations of experiments: the paper's, those beyond it, and the learners that run in them."""
