"""What a network is built from."""

from vitnas.config.baseline import Baseline
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig

Design = ModelConfig | GraftFile | Baseline
"""A model file, a network of timm with grafts, or a reference network."""
