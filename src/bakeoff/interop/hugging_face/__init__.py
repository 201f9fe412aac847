"""Folders in the format of transformers: config.json, model.safetensors, tokenizer files."""
