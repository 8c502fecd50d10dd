"""`unflip estimate`: how many labels are wrong."""

import warnings

from unflip._app import words
from unflip._app.reviewed import read_reviewed
from unflip._utils.typing import Record
from unflip.cli import _options as options
from unflip.cli._session import Session, session


def estimate(
    source: options.Source,
    method: options.Method,
    estimator: options.Estimator = "logistic",
    proba: options.Proba = None,
    reviewed: options.Reviewed = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate how many labels are wrong, in each class, with intervals."""
    with session(as_json=as_json, quiet=quiet) as shell:
        learn = method.auditor(source, shell.step, proba, estimator)
        data = source.read(check_columns=proba is None)
        if estimator != "logistic":
            warnings.warn(
                f"--estimator {estimator} has no effect here: it is the classifier that `unflip "
                "fit` trains. The estimate depends on --posterior.",
                stacklevel=2,
            )
        checked = None if reviewed is None else read_reviewed(reviewed, data)
        found = learn(data, reviewed=checked).found
        shell.result({"table": str(source.table), "label": source.label, **found})
        say_found(shell, found)
        say_checked(shell, found)
        shell.say()
        shell.say("What to do next:")
        for sentence in words.next_steps(found):
            shell.say(sentence, item=True)


def say_briefly(shell: Session, found: Record) -> None:
    """Print the verdict and the findings, without the rates."""
    for sentence in words.verdict(found):
        shell.say(sentence)
    say_findings(shell, found)


def say_found(shell: Session, found: Record) -> None:
    """Print the verdict, the rates, the warnings and the notes."""
    for sentence in words.verdict(found):
        shell.say(sentence)
    rates = [] if words.is_meaningless(found) else words.rate_sentences(found)
    if rates:
        shell.say()
        for sentence in rates:
            shell.say(sentence, item=True)
        for sentence in words.certainty(found):
            shell.say()
            shell.say(sentence)
    say_findings(shell, found)


def say_checked(shell: Session, found: Record) -> None:
    """Print the error rate that checked rows give, beside that from the labels alone."""
    if found.get("checked"):
        shell.say()
        for sentence in words.checked_sentences(found["checked"]):
            shell.say(sentence)


def say_findings(shell: Session, found: Record) -> None:
    """Print the warnings and the notes, which are then not repeated on stderr."""
    for title, said in (("Warnings", words.warnings_of(found)), ("Notes", words.notes_of(found))):
        if said:
            shell.say()
            shell.say(f"**{title}:**")
        for sentence in said:
            shell.say(sentence, item=True)
    shell.told(found["warnings"])
