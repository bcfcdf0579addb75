"""Whether a run's front is still above its baselines after long trainings: both sides trained."""
