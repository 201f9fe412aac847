"""A run as an object: loaded once, and asked for whatever it can do."""
