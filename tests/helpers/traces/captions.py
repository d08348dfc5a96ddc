"""Sentence pairs written for these tests, in the style of image captions and everyday talk.

None of the English sentences is in the files that the models were trained on (compared lower-cased, without
punctuation).
"""

PAIRS = (
    ("A black dog is running through the tall grass.", "Un chien noir court dans les hautes herbes."),
    ("A woman in a blue dress is walking down the street.", "Une femme en robe bleue marche dans la rue."),
    ("Two children are playing with a red ball in the park.", "Deux enfants jouent avec un ballon rouge dans le parc."),
    ("A man wearing a white hat is sitting on a bench.", "Un homme portant un chapeau blanc est assis sur un banc."),
    ("A young girl is eating an ice cream.", "Une jeune fille mange une glace."),
    ("Three men are working on a roof.", "Trois hommes travaillent sur un toit."),
    ("A boy in a green shirt is jumping into the water.", "Un garçon en t-shirt vert saute dans l'eau."),
    ("An old woman is reading a newspaper in a café.", "Une vieille femme lit un journal dans un café."),
    ("A brown horse is standing in a field.", "Un cheval marron est debout dans un champ."),
    ("People are waiting for the bus in the rain.", "Des gens attendent le bus sous la pluie."),
    ("A cyclist is riding on a mountain road.", "Un cycliste roule sur une route de montagne."),
    ("A little girl is holding her mother's hand.", "Une petite fille tient la main de sa mère."),
    ("Two women are talking in front of a shop.", "Deux femmes discutent devant un magasin."),
    ("A man is playing the guitar on a stage.", "Un homme joue de la guitare sur une scène."),
    ("A white cat is sleeping on a red sofa.", "Un chat blanc dort sur un canapé rouge."),
    ("A group of people is sitting around a table.", "Un groupe de personnes est assis autour d'une table."),
    ("A child is drawing with a yellow pencil.", "Un enfant dessine avec un crayon jaune."),
    ("A man in a suit is talking on the phone.", "Un homme en costume parle au téléphone."),
    ("A woman with blond hair is smiling.", "Une femme aux cheveux blonds sourit."),
    ("Two dogs are fighting over a stick.", "Deux chiens se battent pour un bâton."),
    (
        "A football player in a red uniform is kicking the ball.",
        "Un joueur de football en tenue rouge frappe le ballon.",
    ),
    ("A family is having lunch on the beach.", "Une famille déjeune sur la plage."),
    ("A young man is taking a picture of a bridge.", "Un jeune homme prend une photo d'un pont."),
    ("A man and a woman are dancing.", "Un homme et une femme dansent."),
    ("A baby is sitting on the floor with a toy.", "Un bébé est assis par terre avec un jouet."),
    ("Several people are crossing the street.", "Plusieurs personnes traversent la rue."),
    ("A boy is throwing a stone into the lake.", "Un garçon jette une pierre dans le lac."),
    ("A woman is cooking in a small kitchen.", "Une femme cuisine dans une petite cuisine."),
    ("The man in the black jacket is looking at the sea.", "L'homme à la veste noire regarde la mer."),
    ("Two girls in pink dresses are dancing on the grass.", "Deux filles en robes roses dansent sur l'herbe."),
    ("I am tired of this noise.", "Je suis fatigué de ce bruit."),
    ("Where is the blue bicycle?", "Où est le vélo bleu ?"),
    ("She loves her little brother.", "Elle aime son petit frère."),
    ("We are happy to be at home.", "Nous sommes heureux d'être à la maison."),
    ("Don't touch the black dog.", "Ne touche pas le chien noir."),
    ("It is very cold in the street.", "Il fait très froid dans la rue."),
    ("They are in front of the house.", "Ils sont devant la maison."),
    ("I know that this man is tall.", "Je sais que cet homme est grand."),
    ("He is the friend of my sister.", "C'est l'ami de ma sœur."),
    ("Are you ready to play football?", "Es-tu prêt à jouer au football ?"),
)

# Target word -> source word that it translates, in sentences whose links nobody would dispute.
LINKS = (
    (
        "The black dog is running across the green grass.",
        "Le chien noir court dans l'herbe verte.",
        {"chien": "dog", "noir": "black", "herbe": "grass", "verte": "green"},
    ),
    (
        "A woman in a red dress is reading a book.",
        "Une femme en robe rouge lit un livre.",
        {"femme": "woman", "robe": "dress", "rouge": "red", "livre": "book"},
    ),
    (
        "Two boys are playing with a white ball.",
        "Deux garçons jouent avec un ballon blanc.",
        {"Deux": "Two", "garçons": "boys", "ballon": "ball", "blanc": "white"},
    ),
)
