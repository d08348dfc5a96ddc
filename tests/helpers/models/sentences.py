"""A few sentences and the tiny vocabulary learnt from them, for tests that need a tokenizer and no training data."""

from functools import cache

from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary

ENGLISH = (
    "The black dog is running across the green grass.",
    "A man in a blue shirt is standing on a ladder.",
    "I don't know what you're talking about, but it's fine.",
    "Two women are sitting at a table; they've got 2 dogs.",
    "He said \"hello\" and we'll see - I'd say: yes!",
    "Is the child's red ball (the big one) in the water?",
)
FRENCH = (
    "Le chien noir court dans l'herbe verte.",
    "Un homme en t-shirt bleu se tient sur une échelle.",
    "Je ne sais pas de quoi tu parles, mais c'est bien.",
    "Deux femmes sont assises à une table ; elles ont 2 chiens.",
    "Il a dit « bonjour » et aujourd'hui nous verrons !",
    "À l'aide ! Qu'est-ce que c'est ? Où est la fille de Mike's ?",
    "(ballon) L'enfant n'a pas vu le gros ballon rouge jusqu'ici.",
    "Été comme hiver, là-bas, j'ai froid : 25 degrés.",
)


@cache
def tiny_text() -> SubwordTokenizer:
    return train_vocabulary([*ENGLISH, *FRENCH] * 2, 180)
