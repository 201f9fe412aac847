"""Export of models that transformers has no class for: one file of code, with the parts that they need."""
