"""What the trainings of some networks say about others: a Gaussian process over networks."""
