"""Worker processes side by side, and the cores and memory that this machine has for them."""
