"""A run's folder and what is kept in it: the study, weights, the lock."""
