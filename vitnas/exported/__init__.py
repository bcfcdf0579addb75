"""Networks as folders: writing and reading.

`folder` names the files, `read` loads them, and the other modules write them. No module imports
torch before it needs a network.
"""
