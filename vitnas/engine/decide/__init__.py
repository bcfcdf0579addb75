"""What is trained next, and what becomes of it; nothing here knows where trainings run."""
