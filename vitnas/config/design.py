"""What a network is built from."""

from vitnas.config.baseline import Baseline
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig

ModelOrGraft = ModelConfig | GraftFile
"""A model file, or a network of timm or of ours with grafts."""
Design = ModelOrGraft | Baseline
"""One of these, or a reference network."""
