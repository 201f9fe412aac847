"""Models that transformers has no class for: one file of source beside the weights, of the parts that they need."""
