"""The page by itself: nothing is fetched, every part is named; and as a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from smoothctl.cli import run
from smoothctl.reporting.assemble import assemble
from smoothctl.reporting.output import pictures
from smoothctl.reporting.output.page import render, write
from smoothctl.reporting.reader import read_frame
from smoothctl.reporting.sources import find_logs, find_runs, read_logs
from tests.reporting.make import certified_frame, radius_frame

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
VOID = {"meta", "img", "br", "link", "input", "hr"}
# Tells over the page itself, in the browser, what a reader would trip over.
PROBE = """<script>
addEventListener('load', () => {
  const wide = [...document.querySelectorAll('main *, header *')].filter(e =>
    !e.closest('.scroll') && !e.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1);
  const empty = [...document.images].filter(i => !i.complete || !i.naturalWidth);
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  const refs = [...document.querySelectorAll('svg use')].map(e => e.getAttribute('xlink:href').slice(1));
  const style = getComputedStyle(document.body);
  document.title = JSON.stringify({
    wide: wide.length, scroll: document.documentElement.scrollWidth - innerWidth, empty: empty.length,
    repeated: ids.length - new Set(ids).size, missing: refs.filter(r => !ids.includes(r)).length,
    ink: style.color, paper: style.backgroundColor, width: innerWidth,
    plots: [...document.querySelectorAll('figure > svg')].filter(s => s.getBoundingClientRect().height > 100).length,
  });
});
</script>"""


class Tree(HTMLParser):
    """Collects elements, and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(text: str) -> Tree:
    tree = Tree()
    tree.feed(text)
    assert tree.open == []
    return tree


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    """A page from two logs of a trained run, with pictures."""
    place = tmp_path_factory.mktemp("page")
    for sigma in ("0.25", "0.5"):
        log = place / "runs" / f"s{sigma}" / "certify.tsv"
        log.parent.mkdir(parents=True)
        shutil.copy(trained / "epochs.jsonl", log.parent)
        shutil.copy(trained / "settings.json", log.parent)
        command = ["certify", str(trained), "--n", "200", "--every", "30", "--sigma", sigma, "--out", str(log)]
        assert run([*command, "--device", "cpu"]) == 0
    frames, problems = read_logs(find_logs([place / "runs"]))
    assert not problems
    report = assemble(frames, what_if=[("alpha", "0.01")], runs=find_runs([place / "runs"]))
    return write(report, place / "report")


def test_the_page_fetches_nothing(demo: Path):
    tree = parse(demo.read_text(encoding="utf-8"))
    assert not {tag for tag, _ in tree.elements} & {"script", "link", "iframe", "object"}
    for tag, attributes in tree.elements:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:image/png;base64,")), (tag, target)
    assert "url(http" not in demo.read_text(encoding="utf-8")
    assert "@import" not in demo.read_text(encoding="utf-8")


def test_the_page_is_named_throughout(demo: Path):
    text = demo.read_text(encoding="utf-8")
    tree = parse(text)
    tags = [tag for tag, _ in tree.elements]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert all(attributes.get("scope") for tag, attributes in tree.elements if tag == "th")
    assert all(attributes.get("alt") for tag, attributes in tree.elements if tag == "img")
    for tag, attributes in tree.elements:
        if tag == "svg":
            assert attributes["role"] == "img"
            for name in attributes["aria-labelledby"].split():
                assert f'id="{name}"' in text
    assert ("html", {"lang": "en"}) in tree.elements
    ids = [attributes["id"] for _, attributes in tree.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_the_page_says_what_was_decided(demo: Path):
    text = demo.read_text(encoding="utf-8")
    for part in (
        "clean",
        "sigma 0.25",
        "sigma 0.5",
        "radius",
        "s0.25 (alpha=0.01)",
        "cost: training",
        "training: lr",
        "ACR",
    ):
        assert part in text
    assert "lenet" in text


def test_the_same_report_gives_the_same_page(demo: Path):
    place = demo.parent.parent / "runs"
    frames, _ = read_logs(find_logs([place]))
    report = assemble(frames, what_if=[("alpha", "0.01")], runs=find_runs([place]))
    assert render(report, "", pictures.strips(report.recorded, None)) == demo.read_text(encoding="utf-8")


def test_lineage_is_on_the_page():
    from dataclasses import replace

    about = {"model": {"arch": "vit", "method": "crt", "lineage": [{"arch": "resnet110", "sha256": "abc"}]}}
    frame = replace(certified_frame([[100, 0]], [0], dataset="<digits>"), about=about)
    text = render(assemble([frame]), "no dataset")
    parse(text)
    assert "teacher 1" in text
    assert "resnet110" in text
    assert "&lt;digits&gt;" in text


def test_without_a_dataset_the_page_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    report = assemble([radius_frame([0.5, 0.25], [1, 1], [1, 1])])
    text = write(report, tmp_path / "page").read_text(encoding="utf-8")
    assert "No pictures: the logs do not say of which dataset they are" in text
    assert "pictures are left out" in capsys.readouterr().err


def test_a_dataset_that_is_named_gives_pictures_of_others_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from smoothctl import report
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import open_split

    log = tmp_path / "theirs.tsv"
    labels = [open_split(registry().find("dataset", "digits").value, "test", None)[index][1] for index in range(3)]
    rows = "".join(f"{index}\t{label}\t{label}\t0.3\t1\t0:00:01\n" for index, label in enumerate(labels))
    log.write_text(f"idx\tlabel\tpredict\tradius\tcorrect\ttime\n{rows}")
    text = report(log).write_page(tmp_path / "page", dataset="digits").read_text(encoding="utf-8")
    assert "No pictures" not in text
    assert text.count("data:image/png") >= 3
    assert "pictures are left out" not in capsys.readouterr().err


def test_pictures_of_another_dataset_are_not_shown(demo: Path):
    from dataclasses import replace

    frame = read_frame(demo.parent.parent / "runs" / "s0.25" / "certify.tsv")
    other = replace(frame, settings={**frame.settings, "data": "360 images, sha256:other"})
    with pytest.raises(Exception, match="not the one that was certified"):
        pictures.strips([other], None)


def browse(page: Path, place: Path, width: int, dark: bool = False, shot: bool = False) -> dict:
    """Open a page in a headless browser inside a frame of this width; what its probe found."""
    import html
    import json

    text = page.read_text(encoding="utf-8").replace("</head>", f"{PROBE}</head>")
    (place / "probed.html").write_text(text, encoding="utf-8")
    frame = "document.body.append(document.querySelector('iframe').contentDocument.title)"
    (place / "frame.html").write_text(
        f'<body style="margin:0"><iframe src="probed.html" style="width:{width}px;height:3000px;border:0"></iframe>'
        f"<script>addEventListener('load', () => setTimeout(() => {frame}, 300))</script></body>"
    )
    assert BROWSER is not None
    profile = place / f"profile-{width}-{dark}"
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--allow-file-access-from-files", f"--user-data-dir={profile}", "--virtual-time-budget=4000",
        *(["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]),
        "--dump-dom", f"file://{place / 'frame.html'}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"</iframe>.*?(\{&quot;.*?\}|\{\".*?\})", done.stdout, re.DOTALL)
    assert found, done.stderr[-800:]
    return dict(json.loads(html.unescape(found[1])))


def brightness(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2)."""
    parts = [int(text) / 255 for text in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100, 1280])
def test_a_browser_shows_it(demo: Path, tmp_path: Path, width: int, dark: bool):
    seen = browse(demo, tmp_path, width, dark)
    assert seen["width"] == width
    assert (seen["wide"], seen["empty"], seen["repeated"], seen["missing"]) == (0, 0, 0, 0)
    assert seen["scroll"] <= 0
    assert seen["plots"] == 7
    ink, paper = brightness(seen["ink"]), brightness(seen["paper"])
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 7
    assert (ink > paper) == dark


def test_steps_of_a_pixel_are_rounded_down():
    """A radius of 1/4 on 8x8 images is 7.97 steps at every value: eight are not proved."""
    from dataclasses import replace

    from smoothctl.reporting.output.answer import _in_pixels

    frame = replace(certified_frame([[100, 0]], [0]), about={"model": {"input_shape": [1, 8, 8]}})
    assert _in_pixels(0.25, frame).startswith("every value by 7.9 of 255")
