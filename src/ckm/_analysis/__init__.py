"""What else a sketch answers: how many clusters, mixtures, comparison, change in a stream."""
