"""Scoring a trained network, and asking it: what `vitnas evaluate` and `vitnas predict` do."""
