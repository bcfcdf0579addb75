"""Whether vitnas works on a CUDA device, and how fast: the command `vitnas gpu-check`."""
