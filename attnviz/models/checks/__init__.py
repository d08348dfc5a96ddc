"""What is checked of a model before anything is built: the values in its JSON, and the shapes of its weights."""
