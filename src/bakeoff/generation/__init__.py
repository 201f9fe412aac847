"""From prompts to texts: next tokens chosen, searched or drawn, by causal and sequence-to-sequence models."""
