"""Processes that work side by side, and what this machine has for them."""
