"""Processes that train one model together: their launch, their sums and agreements, and how one that fails ends all."""
