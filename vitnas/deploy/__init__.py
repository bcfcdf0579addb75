"""Where a trained network will run: the command `vitnas deploy-check`."""
