"""`unflip estimate`: how often labels are wrong, in words."""

import warnings

from unflip._app.reviewed import read_reviewed
from unflip._app.words import (
    certainty,
    checked_sentences,
    is_meaningless,
    next_steps,
    notes_of,
    rate_sentences,
    verdict,
    warnings_of,
)
from unflip._utils.typing import Record
from unflip.cli import _options as options
from unflip.cli._session import Session, session


def estimate(
    table: options.TableFile,
    label: options.Label,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    merge_labels: options.MergeLabels = False,
    drop_classes: options.DropClasses = None,
    estimator: options.Estimator = "logistic",
    posterior: options.Posterior = "auto",
    rates: options.Rates = None,
    proba: options.Proba = None,
    reviewed: options.Reviewed = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say how often labels are wrong, in which class, and how sure that is."""
    labels = encoding, skip_unlabelled, merge_labels, drop_classes, proba
    source = options.Source(table, label, positive, drop, identifier, separator, *labels)
    method = options.Method(estimator, rates, seed, posterior)
    with session(as_json=as_json, quiet=quiet) as shell:
        learn = method.auditor(source, shell.step)
        data = source.read()
        if estimator != "logistic":
            warnings.warn(
                f"--estimator {estimator} is what a model is trained by, and changes nothing here: "
                "--posterior is what the estimate rests on.",
                stacklevel=2,
            )
        checked = None if reviewed is None else read_reviewed(reviewed, data)
        found = learn(data, reviewed=checked).found
        shell.result({"table": str(source.table), "label": source.label, **found})
        say_found(shell, found)
        say_checked(shell, found)
        shell.say()
        shell.say("What to do next:")
        for sentence in next_steps(found):
            shell.say(sentence, item=True)


def say_briefly(shell: Session, found: Record) -> None:
    """Print the verdict and the findings, for commands that are not about the estimate."""
    for sentence in verdict(found):
        shell.say(sentence)
    say_findings(shell, found)


def say_found(shell: Session, found: Record) -> None:
    """Print the verdict, the rates, the warnings and the notes."""
    for sentence in verdict(found):
        shell.say(sentence)
    if not is_meaningless(found):
        shell.say()
        for sentence in rate_sentences(found):
            shell.say(sentence, item=True)
        for sentence in certainty(found):
            shell.say()
            shell.say(sentence)
    say_findings(shell, found)


def say_checked(shell: Session, found: Record) -> None:
    """Print what checked rows count, beside what the labels alone say."""
    if found.get("checked"):
        shell.say()
        for sentence in checked_sentences(found["checked"]):
            shell.say(sentence)


def say_findings(shell: Session, found: Record) -> None:
    """Print the warnings and the notes, which are not noted again on stderr."""
    for title, said in (("Warnings", warnings_of(found)), ("Notes", notes_of(found))):
        if said:
            shell.say()
            shell.say(f"**{title}:**")
        for sentence in said:
            shell.say(sentence, item=True)
    shell.told(found["warnings"])
