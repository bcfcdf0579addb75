"""What a person sees of a running search, and what a run notes about its machine."""
