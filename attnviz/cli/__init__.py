"""The command line: one module per command (`commands` lists them), and what they share."""
