"""This machine: its cores and memory, its allocator, and the launchers that start several processes on it."""
