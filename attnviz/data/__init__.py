"""Tasks and their data: corpora, text styles and the tokenizer. Nothing is imported here."""

MOST_PIECES = 200  # pieces of a text, <eos> included
