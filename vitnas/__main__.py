"""`python -m vitnas` is `vitnas`."""

from vitnas.cli import main

if __name__ == "__main__":
    main()
