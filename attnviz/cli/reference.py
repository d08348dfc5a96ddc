"""`python -m attnviz reference`: the statistics of each model on its test set, with which one sentence is compared."""

from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments

HELP = "measure a model's attention on its test set, so that the page can place a sentence among it"
DESCRIPTION = (
    "Translate the test set with every model that attends, measure its attention, and write percentiles to "
    "sentences.json beside the weights; with those of the untrained model and of shuffled words. Run it again when a "
    "model has changed."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", nargs="+", metavar="NAME", help=f"{arguments.MODEL_HELP} (default: all)")
    parser.add_argument("--pair", type=arguments.pair, help="all models of this language pair")
    parser.add_argument("--sentences", **arguments.COUNT, default=1000, help="of the test set (default 1000)")
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Measure one model after the other, and print where its file is written."""
    names = _names(args)

    from attnviz.data import corpora
    from attnviz.data.tasks import TASKS
    from attnviz.models import machine
    from attnviz.models.names import ModelName
    from attnviz.progress import bar as progress_bar
    from attnviz.studies import references

    machine.use_threads(args.threads or machine.THREADS)
    tests: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        pair = ModelName.parse(name).pair
        if pair not in tests:
            generated = pair in TASKS and TASKS[pair].generated
            corpus = corpora.load(pair, None if generated else arguments.data_folder(args))
            test, sentences = next(iter((corpus.tests or {"val": corpus.val}).items()))
            tests[pair] = test, [source for source, _ in sentences[: args.sentences]]
        root = arguments.root_of(args, name)
        measured = references.measure(
            name, root, *tests[pair], progress=lambda all: progress_bar(all, name, len(tests[pair][1]))
        )
        path = references.write(measured, name, root)
        print(f"{path}: {measured.sentences} sentences of {measured.test}, {path.stat().st_size / 1e3:.1f} kB")


def _names(args: Namespace) -> list[str]:
    """The requested models that translate and have attention. ValueError if there are none."""
    from attnviz.mechanisms import MECHANISMS
    from attnviz.models import checkpoint_files
    from attnviz.models.names import ModelName

    root = arguments.given_root(args)
    wanted = [
        name
        for name in map(ModelName.parse, args.model or checkpoint_files.names(root))
        if name.mechanism in MECHANISMS and MECHANISMS[name.mechanism].kinds and args.pair in (None, name.pair)
    ]
    if not wanted:
        raise ValueError("there is no model that translates and attends among those that are asked for")
    return [str(name) for name in wanted]
