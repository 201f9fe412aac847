"""How probable texts are: the log-probability of their tokens, read forwards or from both sides."""
