"""What leaves the house: networks as folders, how they are written and how they are read back.

`folder` says which files there are, `read` loads them, the others write them. No file here imports
torch before a network is needed.
"""
