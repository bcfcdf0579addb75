"""Trainings that no sampler proposes: which, what each gave, and where that is kept."""
