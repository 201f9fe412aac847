"""Models behind HTTP: an API, and a page to try them in."""
