"""`python -m vitnas` is `vitnas`."""

import sys

from vitnas.cli import main

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        # Python puts the working directory first. A file there must not be imported only because
        # a model file beside it names it; the command `vitnas` does not look there either.
        del sys.path[0]
    main()
