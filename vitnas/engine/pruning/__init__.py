"""Early stopping for several objectives, and the learning curves that it extrapolates."""
