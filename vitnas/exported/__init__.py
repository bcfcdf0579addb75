"""Networks as folders: how they are written and read.

`folder` names the files, `read` loads them, the other modules write them. No module imports torch
before it needs a network.
"""
