"""Samplers and pruners compared on recorded trainings, in simulated time."""
