"""What several verbs share: options, texts in, results out."""
