"""The papers' own code, written again as plainly as can be: the names are theirs, nothing else.

Each module has the state dict of a public code and computes what that code computes, from reading
it. Nothing here uses vitnas, so that a converted network has something independent to agree with.
"""
