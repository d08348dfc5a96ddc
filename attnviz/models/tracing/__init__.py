"""What models share when they make traces: batches of texts, probabilities, and statistics without maps."""
