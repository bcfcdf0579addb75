"""The papers' models by name, each one a plain model file; no torch.

`papers.yaml` lists all of them with the figures that the papers print. Some networks have a model
file beside it. A network that differs from such a file in a few values (a group schedule, a
placement, an image size) is only an entry in the list: `base` names the file, `set` gives
addresses in the file and their values. `vitnas.nn.zoo.entrypoints` registers all of them with
timm.
"""

from vitnas.nn.zoo.names import Printed, printed, zoo_config, zoo_names, zoo_text

__all__ = ["Printed", "printed", "zoo_config", "zoo_names", "zoo_text"]
