"""Figures of the steps of a trace: one step's bars, statistics by step, and their means."""
