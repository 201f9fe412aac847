"""Use of pre-trained runs: generation, and scores of texts."""
