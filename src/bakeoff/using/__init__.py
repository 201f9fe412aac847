"""A run as an object that is loaded once, with a method for everything that the run can do."""
