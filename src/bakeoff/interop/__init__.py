"""Import from and export to other tools: weights, configurations and tokenizers that compute the same numbers."""
