"""The row itself: texts with marked words, pictures, cells with what is unusual marked."""

import math
import os
import re
import struct
import threading
import zlib
from collections import Counter
from contextlib import ExitStack, closing

import numpy as np
import polars as pl
import pytest

from tests.review import made
from tests.review.made import client_of
from unflip._app.review._images import MAX_BYTES, ImageError, Images
from unflip._app.review._texts import WordMarks
from unflip.estimate import NoiseEstimate
from unflip.noise import NoiseRates
from unflip.review import Decisions, ReviewTable, serve

GOOD, BAD = ["great", "lovely", "fresh"], ["awful", "broken", "stale"]
GIF = b"GIF89a" + bytes(20)
SECRET = b"GIF89a outside of the folder"


def png(size=40):
    """Return a picture of one colour."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = (b"\x00" + b"\x20\x90\xd0" * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def reviews(n=200):
    """Return sentences whose words tell the label, one in ten of them labelled wrong."""
    rng = np.random.default_rng(0)
    good = rng.random(n) < 0.5
    sentence = [
        f"The parcel number {k} was {rng.choice(GOOD if yes else BAD)} and "
        f"{rng.choice(GOOD if yes else BAD)}, <i>said</i> the neighbour."
        for k, yes in enumerate(good)
    ]
    label = np.where(good ^ (rng.random(n) < 0.1), "good", "bad")
    return pl.DataFrame({"sentence": sentence, "label": label})


def audit_of(labels):
    classes, codes = np.unique(labels, return_inverse=True)
    label_proba = np.empty((codes.size, 2))
    label_proba[np.arange(codes.size), codes] = np.linspace(1, 0, codes.size)
    label_proba[np.arange(codes.size), 1 - codes] = np.linspace(0, 1, codes.size)
    even, rates = np.full((codes.size, 2), 0.5), NoiseRates(positive=0.1, negative=0.1)
    return made.audit_of(
        NoiseEstimate(classes, codes, rates, even, even, label_proba, error_range=(0.0, 1.0))
    )


def column(values, name="text"):
    return ReviewTable({name: values, "y": np.arange(len(values)) % 2}, "y").columns[0]


@pytest.fixture
def client():
    with ExitStack() as opened:

        def client(table, folder, **options):
            review = ReviewTable(table, "label")
            store = opened.enter_context(Decisions(folder / "d.sqlite", review.fingerprint))
            options = {"title": "T", "sample_size": 2} | options
            audit = audit_of(table["label"].to_numpy())
            if "images" in options:
                options["images"] = Images(options["images"], review.columns)
            return opened.enter_context(
                closing(client_of(review, audit, store, folder / "out", **options))
            )

        yield client


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["red", "green", "blue", "red"], False),
        (["a sentence that is long enough to read", "and another of the same kind"] * 2, True),
        ([f"short one {k}" for k in range(1500)], True),
        ([f"id-{k}" for k in range(1500)], False),
        ([1.0, 2.0, 3.0, 4.0], False),
        (["", ""], False),
    ],
)
def test_texts_are_told_from_categories(client, tmp_path, values, expected):
    table = pl.DataFrame({"text": pl.Series(values), "label": ["n", "p"] * (len(values) // 2)})
    shown = client(table, tmp_path).get("api/row?row=0&queue=suspicious").json()
    assert bool(shown["texts"]) is expected


def brute_force(sentences, labels, row):
    """Return the log odds of each word in standard errors, counted with nothing but loops."""
    words = [set(re.findall(r"\w\w+", sentence.lower())) for sentence in sentences]
    found = {}
    for word in words[row]:
        cells = {(same, has): 0.5 for same in (True, False) for has in (True, False)}
        for k in range(len(sentences)):
            if k != row:
                cells[labels[k] == labels[row], word in words[k]] += 1
        odds = math.log(cells[True, True]) - math.log(cells[True, False])
        odds -= math.log(cells[False, True]) - math.log(cells[False, False])
        found[word] = odds / math.sqrt(sum(1 / n for n in cells.values()))
    return found


def test_scores_of_words_are_log_odds_without_the_row_itself():
    table = reviews(60)
    codes = np.unique(table["label"].to_numpy(), return_inverse=True)[1]
    marks = WordMarks(column(table["sentence"].to_numpy()), codes, 2)
    for row in (0, 7, 59):
        expected = brute_force(table["sentence"].to_list(), codes.tolist(), row)
        assert marks.scores(row) == pytest.approx(expected)


def test_a_text_is_given_back_whole_with_its_words_marked(client, tmp_path):
    table = reviews()
    page = client(table, tmp_path)
    codes = np.unique(table["label"].to_numpy(), return_inverse=True)[1]
    for row in range(20):
        answer = page.get(f"api/row?row={row}&queue=suspicious").json()
        [text] = answer["texts"]
        assert "".join(part for part, _ in text["parts"]) == table["sentence"][row]
        marked = {part: mark for part, mark in text["parts"] if mark}
        said = set(GOOD + BAD) & set(re.findall(r"\w+", table["sentence"][row]))
        assert marked == {word: 1 if (word in GOOD) == codes[row] else -1 for word in said}
        assert answer["features"] == answer["similar"] == answer["cells"] == []


def test_texts_in_other_scripts_and_long_ones_are_shown_as_they_are(client, tmp_path):
    values = ["", None, "İstanbul ǅ Straße " * 5, "これは日本語の文章です " * 4, "word " * 10_000]
    table = pl.DataFrame({"text": values * 4, "label": ["n", "p"] * 10})
    page = client(table, tmp_path)
    parts = [
        page.get(f"api/row?row={row}&queue=suspicious").json()["texts"][0]["parts"]
        for row in range(5)
    ]
    assert parts[0] == parts[1] == []
    for row in (2, 3):
        assert "".join(text for text, _ in parts[row]) == values[row]
    assert 1000 < len("".join(text for text, _ in parts[4])) < len(values[4])  # cut


def test_the_most_unusual_cells_come_first_and_are_marked(client, tmp_path):
    rng = np.random.default_rng(0)
    data = {f"x{k}": rng.normal(size=100) for k in range(30)}
    data["x20"][0] = 9.0
    table = pl.DataFrame(data | {"label": ["n", "p"] * 50})
    cells = client(table, tmp_path).get("api/row?row=0&queue=suspicious").json()["cells"]
    assert len(cells) == 12
    assert [cell["name"] for cell in cells] == sorted(
        (cell["name"] for cell in cells), key=lambda name: int(name[1:])
    )
    found = {cell["name"]: cell for cell in cells}
    assert found["x20"]["unusual"]
    assert found["x20"]["value"] == "9"
    mean, spread = data["x20"][::2].mean(), data["x20"][::2].std()
    assert abs(9 - mean) / spread > 2


# ---------------------------------------------------------------- pictures


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pictures"
    (root / "in").mkdir(parents=True)
    (root / "in" / "a.png").write_bytes(png())
    (root / "b.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(20))
    (root / "c.gif").write_bytes(GIF)
    (root / "d.webp").write_bytes(b"RIFF\x10\x00\x00\x00WEBPVP8 ")
    (root / "page.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (root / "big.png").write_bytes(png()[:8] + bytes(MAX_BYTES))
    (root / "fake.webp").write_bytes(b"xxxx\x10\x00\x00\x00WEBPVP8 ")
    (tmp_path / "secret.png").write_bytes(png())
    (tmp_path / "pictures-too").mkdir()
    (tmp_path / "pictures-too" / "e.png").write_bytes(png())
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "out").symlink_to(tmp_path / "pictures-too")
    (root / "within").symlink_to("in")
    (root / "inside.png").symlink_to(root / "in" / "a.png")
    (root / "loop.png").symlink_to(root / "loop.png")
    os.mkfifo(root / "pipe.png")
    return root


GIVEN = {
    "in/a.png": "image/png",
    "b.jpg": "image/jpeg",
    "c.gif": "image/gif",
    "d.webp": "image/webp",
    "inside.png": "image/png",
    "in/../b.jpg": "image/jpeg",
    "page.png": "not PNG",
    "fake.webp": "not PNG",
    "big.png": "more than 20 MB",
    "../secret.png": "not in the folder",
    "../pictures-too/e.png": "not in the folder",
    "/etc/passwd": "not in the folder",
    "link.png": "not in the folder",
    "out/e.png": "not in the folder",
    "in": "cannot be read|not a file",
    "": "cannot be read|not a file|empty",
    ".": "cannot be read|not a file",
    "b.jpg/x.png": "cannot be read",
    "within/a.png": "image/png",
    "none.png": "cannot be read",
    "pipe.png": "not a file",
    "loop.png": "not a path|cannot be read|not in",
    "a\x00b.png": "not a path",
    "x" * 5000: "not a path|cannot be read",
}


def paths_table(names):
    return pl.DataFrame({"path": names, "label": ["n", "p"] * (len(names) // 2)})


def test_only_pictures_in_the_folder_are_read(client, folder, tmp_path):
    good = [f"in/{k}.png" for k in range(len(GIVEN))]
    for name in good:
        (folder / name).write_bytes(png())
    names = [*GIVEN, *good]
    page = client(paths_table(names), tmp_path, images=folder)
    for row, (name, expected) in enumerate(GIVEN.items()):
        sent = page.get(f"api/image?row={row}&column=0")
        if expected.startswith("image/"):
            assert (sent.content, sent.headers["content-type"]) == (
                (folder / name).read_bytes(),
                expected,
            )
        else:
            assert sent.status_code == 404
            assert re.search(expected, sent.json()["error"])
    assert "pictures" in page.get("api/image?row=0&column=1").json()["error"]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("swapped", ["in", "in/a.png"])
def test_no_picture_from_outside_is_read_while_a_folder_is_exchanged_for_a_link(
    tmp_path, depth, swapped
):
    top = tmp_path / "pictures"
    root = top.joinpath(*["deep"] * (depth - 1))
    outside = tmp_path / "outside"
    for place, content in ((root / "in", png()), (outside / "in", SECRET)):
        place.mkdir(parents=True)
        (place / "a.png").write_bytes(content)
    (root / "link").symlink_to(outside / swapped)
    table = paths_table([str((root / "in" / "a.png").relative_to(top))] * 2)
    images = Images(top, ReviewTable(table, "label").columns)
    stop = threading.Event()

    def exchange():
        here, link, aside = root / swapped, root / "link", root / "aside"
        while not stop.is_set():
            for old, new in ((here, aside), (link, here), (here, link), (aside, here)):
                old.rename(new)

    swapping = threading.Thread(target=exchange)
    swapping.start()
    read = Counter()
    try:
        for _ in range(5000):
            try:
                read[images.read(0, 0)[0]] += 1
            except ImageError:
                read["refused"] += 1
    finally:
        stop.set()
        swapping.join()
    assert read[png()] > 0  # both were met
    assert read["refused"] > 0
    assert read[SECRET] == 0


def test_the_folder_of_pictures_is_the_one_of_the_start_also_by_a_link(client, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    table = paths_table(["in/a.png", "b.jpg"])
    page = client(table, tmp_path, images=tmp_path / "link")
    assert page.get("api/image?row=0&column=0").content == png()
    # another folder under the same names: its pictures were never offered
    folder.rename(tmp_path / "moved")
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.png").write_bytes(SECRET)
    assert page.get("api/image?row=0&column=0").content == png()


def test_where_folders_have_no_handles_the_same_pictures_are_read(
    client, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "supports_dir_fd", set())  # as on Windows
    test_only_pictures_in_the_folder_are_read(client, folder, tmp_path)


def test_reading_pictures_leaves_no_file_open(client, folder, tmp_path):
    table = paths_table(["in/a.png", "b.jpg", "in", "none.png"])
    page = client(table, tmp_path, images=folder)
    page.get("api/about")  # opens what the caller needs itself
    opened = len(os.listdir("/dev/fd"))
    for _ in range(10):
        for row in range(4):
            page.get(f"api/image?row={row}&column=0")
    assert len(os.listdir("/dev/fd")) == opened


def test_a_folder_that_is_not_there_or_not_named_is_refused(folder, tmp_path):
    table = paths_table(["x.png", "y.png"])
    audit = audit_of(table["label"].to_numpy())
    for images, word in ((tmp_path / "none", "exist"), (folder, "column")):
        with pytest.raises(ValueError, match=word):
            serve(table, "label", audit, tmp_path / "d.sqlite", images=images, started=pytest.fail)


def test_the_browser_names_a_row_and_never_a_path(client, folder, tmp_path):
    table = paths_table(["in/a.png", "b.jpg", "c.gif", "../secret.png"])
    page = client(table, tmp_path, images=folder)
    shown = page.get("api/row?row=0&queue=sample").json()["pictures"]
    assert shown == [{"column": 0, "name": "path", "value": "in/a.png"}]
    sent = page.get("api/image?row=0&column=0")
    assert (sent.status_code, sent.content) == (200, png())
    assert sent.headers["content-type"] == "image/png"
    assert sent.headers["x-content-type-options"] == "nosniff"
    assert "img-src 'self'" in sent.headers["content-security-policy"]
    assert page.get("api/image?row=3&column=0").status_code == 404
    assert page.get("api/image?row=0&column=1").status_code == 404
    for query in ("row=4&column=0", "row=0", "column=0", "row=0&column=../x", "row=-1&column=0"):
        assert page.get(f"api/image?{query}").status_code == 400
    assert page.get("api/image?row=0&column=0&path=../secret.png").content == png()
    assert page.request("GET", "/wrong/api/image?row=0&column=0").status_code == 404
    assert page.post("api/image", {}).status_code == 405
    without = client(table, tmp_path / "other")
    assert without.get("api/image?row=0&column=0").status_code == 404
