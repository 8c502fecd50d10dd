"""Evidence from held-out probabilities of any model."""
