"""Runs as GGUF, which llama.cpp reads."""
