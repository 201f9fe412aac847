"""What other tools have and take: weights, configurations and tokenizers, with the same numbers on both sides."""
