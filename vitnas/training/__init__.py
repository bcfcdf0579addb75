"""Training networks: data, augmentation, the short training of a search, weights."""
