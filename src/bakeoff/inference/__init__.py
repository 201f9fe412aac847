"""Using pre-trained runs: generation, and scores of texts."""
