"""Whether a tokenizer file is safe to use: its size, its steps, and its regular expressions."""
