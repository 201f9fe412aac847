"""Contracts of every recipe's model and batches, as tests of pytest: for all recipes, or for the parts of plugins.

BAKEOFF_PLUGINS=min_gru.py pytest --pyargs bakeoff.conformance
"""
