"""Figures of many sentences: how a statistic is distributed, and two statistics of each sentence."""
