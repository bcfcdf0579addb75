"""study.db: the Optuna study that is the only truth of a run, and how it is read.

One writer, the driver. Everything a report or a resume needs is in it: the space, the
environment, and for each trial its configuration, cost, curve and outcome.
"""
