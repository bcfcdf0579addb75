"""What a search and replays gave when these files were written, as JSON; see `write.py`."""
