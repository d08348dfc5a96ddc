"""Figures of the heads of one model: all at once, one number per head, lines between tokens, and distance by layer."""
