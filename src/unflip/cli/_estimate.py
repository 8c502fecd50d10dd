"""`unflip estimate`: how often labels are wrong, in words."""

from unflip._app.markup import plain
from unflip._app.words import certainty, headline, next_steps, rate_sentences
from unflip._typing import Record
from unflip.cli import _options as options
from unflip.cli._session import Session, session


def estimate(
    table: options.TableFile,
    label: options.Label,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    estimator: options.Estimator = "logistic",
    rates: options.Rates = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say how often labels are wrong, in which class, and how sure that is."""
    source = options.Source(table, label, positive, drop, identifier, separator)
    method = options.Method(estimator, rates, seed)
    with session(as_json=as_json, quiet=quiet) as shell:
        learn = method.learner(source, shell.step)
        learnt = learn(source.read())
        found = learnt.found
        shell.result({"table": str(source.table), "label": source.label, **found})
        say_found(shell, found)
        shell.say()
        shell.say("What to do next:")
        for sentence in next_steps(found):
            shell.say(sentence, item=True)


def say_found(shell: Session, found: Record) -> None:
    """Print what was found, and what is doubtful about it."""
    shell.say(headline(found))
    for sentence in rate_sentences(found):
        shell.say(sentence, item=True)
    for sentence in certainty(found):
        shell.say()
        shell.say(sentence)
    if found["warnings"]:
        shell.say()
        shell.say("**Doubtful:**")
    for sentence in found["warnings"]:
        shell.say(plain(sentence), item=True)
