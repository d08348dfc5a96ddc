"""Tasks and their data: corpora, text styles and the tokenizer."""
