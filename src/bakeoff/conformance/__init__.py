"""What every recipe's model and batches promise, as tests of pytest: of all recipes, or of the parts of plugins.

BAKEOFF_PLUGINS=min_gru.py pytest --pyargs bakeoff.conformance
"""
