"""Scores of models: BLEU, chrF, accuracy and attention metrics."""
