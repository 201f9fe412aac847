"""Using pre-trained runs: generation."""
