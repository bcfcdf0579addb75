"""Settings for the whole suite."""

from hypothesis import settings

# No deadline: how long a test takes says something of the machine, not of the code.
settings.register_profile("vitnas", deadline=None)
settings.load_profile("vitnas")
