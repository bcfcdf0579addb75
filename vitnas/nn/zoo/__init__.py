"""The papers' models by name, each one a plain model file; no torch.

`papers.yaml` lists them all with what the papers print. A network of its own is a file beside it;
one that differs from another in a few values (a group schedule, a placement, an image size) is its
line in the list: `base`, and under `set` the addresses in the file with their values.
`vitnas.nn.zoo.entrypoints` registers all of them with timm.
"""

from vitnas.nn.zoo.names import Printed, printed, zoo_config, zoo_names, zoo_text

__all__ = ["Printed", "printed", "zoo_config", "zoo_names", "zoo_text"]
