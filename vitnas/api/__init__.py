"""The verbs of vitnas: what the command line does, as functions.

`runs` make runs and read them, `networks` writes, trains and looks into one network, `scoring` asks
trained ones.
"""

from vitnas.api.networks import diagnose, export, train
from vitnas.api.runs import calibrate, confirm, load_run, load_space, search, tune
from vitnas.api.scoring import deploy_check, evaluate, predict

__all__ = [
    "calibrate",
    "confirm",
    "deploy_check",
    "diagnose",
    "evaluate",
    "export",
    "load_run",
    "load_space",
    "predict",
    "search",
    "train",
    "tune",
]
