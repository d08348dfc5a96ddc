"""How much the models read. No other imports here: the page says these before it waits for torch."""

LONGEST = 200  # pieces of a text, <eos> included
