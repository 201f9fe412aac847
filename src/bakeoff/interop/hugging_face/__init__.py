"""Folders as transformers writes and reads them: config.json, model.safetensors, tokenizer files."""
