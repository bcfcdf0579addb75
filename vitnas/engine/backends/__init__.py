"""Where trainings run: in this process, or on Ray's workers."""
