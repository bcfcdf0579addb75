"""`python search.py` is `vitnas search`: the default space, or the one that is named."""

import sys

from vitnas.cli import main

if __name__ == "__main__":
    main(["search", *sys.argv[1:]])
