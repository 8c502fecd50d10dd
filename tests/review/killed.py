"""Kills a review before each of its SQL statements in turn, and looks at what is left of it."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.review.made import made_audit, made_table
from unflip._app.review import Opinion, QueueFilter, ReviewSession
from unflip.review import Decisions, ReviewTable

TABLE = made_table(60)
AUDIT, REVIEW = made_audit(TABLE), ReviewTable(TABLE, "kind", id_column="name")


def steps(session: ReviewSession) -> list[Callable[[], object]]:
    """Return what a person does: rows of three queues are drawn, decided, undone and decided."""

    def decide(queue: str, verdict: str) -> None:
        row = session.queue(QueueFilter(queue), -1)["rows"][0]
        other = 1 - row["given"] if verdict == "change" else None
        session.decide(row["row"], row["version"], verdict, other, queue)

    def undo() -> None:
        last = session.tally()["last"]
        session.undo(last["row"], last["version"])

    done: list[Callable[[], object]] = []
    for queue in ("count", "suspicious", "train", "sample", "count"):
        for verdict in ("keep", "change", "unsure"):
            done.append(lambda queue=queue, verdict=verdict: decide(queue, verdict))
        done.append(undo)
    return done


def opened(path: Path) -> tuple[Decisions, ReviewSession]:
    store = Decisions(path, REVIEW.fingerprint)
    options: dict[str, Any] = {"title": "t", "sample_size": 10, "random_state": 0}
    session = ReviewSession(REVIEW, Opinion(AUDIT, REVIEW), store, path.parent, **options)
    return store, session


def state(store: Decisions) -> list[Any]:
    """Return all that a review knows, as JSON does."""
    decided = {row: [said.verdict, said.label] for row, said in sorted(store.all().items())}
    kept = {row: said for row, said in decided.items() if said != [None, None]}
    return json.loads(json.dumps([kept, [list(draw) for draw in store.drawn.draws()]]))


def killed(path: Path, before: int) -> tuple[int, list[Any]]:
    """Return how many steps were acknowledged, and the state found afterwards."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        store, session = opened(path)
        left = before

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        store._connection.set_trace_callback(count)
        for step in steps(session):
            step()
            os.write(writer, b".")
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answers:
        acknowledged = len(answers.read())
    store, _ = opened(path)
    with store:
        return (acknowledged if os.WIFSIGNALED(status) else -1), state(store)


def main(folder: Path, trials: int) -> None:
    store, session = opened(folder / "whole.sqlite")
    with store:
        states = [state(store)]
        for step in steps(session):
            step()
            states.append(state(store))
    lost = []
    for before in range(trials):
        acknowledged, found = killed(folder / f"{before}.sqlite", before)
        if acknowledged < 0:  # it came to its end before that many statements
            break
        # rows may have been drawn for the next step, and not been shown
        now, then = states[acknowledged], states[acknowledged + 1]
        kept = found[0] in (now[0], then[0]) and found[1] in (now[1], then[1])
        lost += [] if kept else [[before, acknowledged]]
    else:
        before = trials
    print(json.dumps({"trials": before, "lost": lost}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
