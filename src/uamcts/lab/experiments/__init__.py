"""Experiments as declarations: the paper's, those beyond it, and what may learn in them."""
