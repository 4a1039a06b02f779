"""Plugins that lie are caught, whatever they lie about; true ones pass."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from smoothctl import (
    Architecture,
    ArrayImages,
    Backend,
    Batch,
    Cell,
    Dataset,
    Draws,
    Imported,
    Importer,
    Method,
    Noise,
    ReportPlot,
    ReportTable,
    Table,
    Tracker,
    Workload,
    figures,
    words,
)  # fmt: skip
from smoothctl.hooks.registry import registry
from smoothctl.testing import (
    check_architecture,
    check_backend,
    check_dataset,
    check_importer,
    check_method,
    check_noise,
    check_plot,
    check_table,
    check_tracker,
    run_command,
    tiny_report,
)  # fmt: skip

GAUSSIAN: Noise = registry().find("noise", "gaussian").value


def scaled(factor: float) -> Any:
    return lambda shape, sigma, draws: factor * GAUSSIAN.sample(shape, sigma, draws)


def test_a_true_noise_that_states_no_law_passes() -> None:
    check_noise(dataclasses.replace(GAUSSIAN, cdf=None))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample": scaled(0.1)}, "weaker than radius"),
        ({"sample": scaled(0.94)}, "weaker than radius"),
        ({"sample": scaled(0.97), "cdf": GAUSSIAN.cdf}, "does not follow cdf"),
        ({"norm": "linf"}, "weaker than radius"),
        ({"radius": lambda p, sigma: 1.05 * GAUSSIAN.radius(p, sigma)}, "weaker than radius"),
        ({"sample": lambda shape, sigma, draws: sigma * torch.randn(shape)}, "second time"),
        ({"sample": lambda shape, sigma, draws: sigma * Draws(0).normal(shape)}, "same noise"),
        ({"sample": lambda shape, sigma, draws: GAUSSIAN.sample((1, *shape[1:]), sigma, draws)}, "shape"),
    ],
)
def test_noises_that_lie_are_caught(change: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_noise(dataclasses.replace(GAUSSIAN, **{"cdf": None, **change}))


def test_coordinates_that_depend_on_each_other_may_state_no_law_of_one() -> None:
    def shared(shape: tuple[int, ...], sigma: float, draws: Draws) -> Tensor:
        return GAUSSIAN.sample((shape[0], 1, 1, 1), sigma, draws).expand(shape)

    with pytest.raises(AssertionError, match="cdf must be left out"):
        check_noise(dataclasses.replace(GAUSSIAN, sample=shared))


class Honest(Method):
    name, summary = "honest", "cross-entropy"

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        return nn.functional.cross_entropy(model(batch.noisy()), batch.y)


def losing(loss: Any) -> type[Method]:
    return type("Lying", (Honest,), {"loss": loss})


def _changing(self: Method, model: nn.Module, batch: Batch) -> Any:
    batch.x.clamp_(0.4, 0.6)
    return Honest.loss(self, model, batch)


LIES: dict[str, Any] = {
    "must be a mean": lambda self, model, batch: Honest.loss(self, model, batch) * len(batch.x),
    "a mean over the batch's images": lambda self, model, batch: (
        Honest.loss(self, model, batch) + 1e-3 * model(batch.x).square().sum()
    ),  # one of its terms is a sum
    "draws random numbers": lambda self, model, batch: nn.functional.cross_entropy(
        model(batch.x + torch.randn_like(batch.x)), batch.y
    ),
    "must return a loss of one number": lambda self, model, batch: model(batch.x),
    "one without a gradient": lambda self, model, batch: Honest.loss(self, model, batch).detach(),
    "is not finite": lambda self, model, batch: (model(batch.x).sum() * 0).sqrt().mean() / 0,
    "does not depend on": lambda self, model, batch: model[0](batch.x).mean() + model[1].weight.mean(),
    "changes the batch's images": _changing,
}


def test_a_true_method_passes() -> None:
    check_method(Honest)


@pytest.mark.parametrize("said", LIES)
def test_methods_that_lie_are_caught(said: str) -> None:
    def loss(self: Method, model: Any, batch: Batch) -> Any:
        network = getattr(model, "module", model)
        return LIES[said](self, network, batch)

    with pytest.raises(AssertionError, match=said):
        check_method(losing(loss))


def test_an_option_without_a_description_is_named() -> None:
    class Terse(Honest):
        class Options(Method.Options):
            weight: float = 1.0

    with pytest.raises(AssertionError, match="'weight'"):
        check_method(Terse)


class Wrong(nn.Module):
    """A network that errs in a way."""

    def __init__(self, how: str, classes: int):
        super().__init__()
        self.how, self.linear, self.spare = how, nn.Linear(64, classes), nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(x.flatten(1)) + 0 * self.spare.weight.sum() + 0 * self.spare.bias.sum()
        if self.how == "couples":
            return logits - logits.mean(0)
        if self.how == "classes":
            return logits[:, :5]
        if self.how == "infinite":
            return logits / 0
        if self.how == "idle":
            return self.linear(x.flatten(1))
        return logits


@pytest.mark.parametrize(
    ("how", "said"),
    [("couples", "batch"), ("classes", "logits"), ("infinite", "not finite"), ("idle", "nothing depends on"), ("", "")],
)
def test_architectures_that_lie_are_caught(how: str, said: str) -> None:
    made = Architecture("wrong", lambda spec: Wrong(how, spec.num_classes), "errs")
    if not how:
        check_architecture(made, (1, 8, 8))
        return
    with pytest.raises(AssertionError, match=said):
        check_architecture(made, (1, 8, 8))


def _images(labels: Any = (0, 1), shape: tuple[int, ...] = (2, 8, 8)) -> Any:
    return lambda split, data, download: ArrayImages(np.zeros(shape, np.uint8), np.array(labels))


class Restless:
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int, /) -> tuple[Any, int]:
        return np.random.rand(8, 8).astype(np.float32), 0  # noqa: NPY002 - as a careless one would


def _connecting(split: str, data: Any, download: bool) -> Any:
    import socket

    socket.create_connection(("127.0.0.1", 9), timeout=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"load": _images((0, 2))}, "has label 2"),
        ({"class_names": ("a", "a")}, "comes twice"),
        ({"mean": (0.5, 0.5), "std": (1.0, 1.0)}, "one number per channel"),
        ({"load": lambda *_: Restless()}, "another the second time"),
        ({"load": _connecting}, "uses the network"),
        ({"augment": lambda x, draws: x[:, :, :4]}, "changes the shape"),
        ({"augment": lambda x, draws: x + torch.rand(1)}, "draws from elsewhere"),
        ({"summary": ""}, "say in summary"),
    ],
)
def test_datasets_that_lie_are_caught(change: dict[str, Any], said: str) -> None:
    true = Dataset("true", _images(), (1, 8, 8), ("a", "b"), summary="black")
    if not said:
        check_dataset(true)
        return
    with pytest.raises(AssertionError, match=said):
        check_dataset(dataclasses.replace(true, **change))


def test_a_command_that_fails_is_shown(tmp_path: Any) -> None:
    assert "methods" in run_command("plugins", tmp_path)
    with pytest.raises(
        AssertionError, match=r"smoothctl certify nothing ended with 2:\n.*there is no model at nothing"
    ):
        run_command("certify nothing", tmp_path)


def traced(network: nn.Module, work: Workload) -> Any:
    return torch.jit.trace(network, torch.rand(2, *work.shape))


def of_one_size(network: nn.Module, work: Workload) -> Any:
    return lambda x: network(x[:1]).expand(len(x), -1)


def zeroing(network: nn.Module, work: Workload) -> Any:
    before = copy.deepcopy(network)
    nn.init.zeros_(next(network.parameters()))
    return before


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("prepare", "change", "said"),
    [
        (lambda network, work: lambda x: 1.01 * network(x), {}, "differ from PyTorch's"),
        (of_one_size, {}, "differ from PyTorch's"),
        (zeroing, {}, "changes the network"),
        (lambda network, work: network.train(), {}, "training mode"),
        (traced, {"devices": ("cuda",)}, "only backends that serve"),
        (traced, {"summary": ""}, "say in summary"),
    ],
)
def test_backends_that_lie_are_caught(prepare: Any, change: dict[str, Any], said: str) -> None:
    true = Backend("true", traced, "traced")
    check_backend(true)
    with pytest.raises(AssertionError, match=said):
        check_backend(dataclasses.replace(true, prepare=prepare, **change))


def test_built_in_backends_pass() -> None:
    for entry in registry().all("backend"):
        if entry.value.serves("cpu", "fp32") and entry.name != "compile":  # which takes a minute
            check_backend(entry.value)


def read_mine(content: Any) -> Imported | None:
    known = isinstance(content, dict) and "mine" in content
    return Imported(content["mine"], where="mine") if known else None


def test_importers_that_lie_are_caught() -> None:
    true, content = Importer("true", read_mine, "mine"), {"mine": {"fc.weight": torch.ones(2, 2)}}
    assert list(check_importer(true, content).state) == ["fc.weight"]
    for importer, held, said in [
        (true, {"theirs": content["mine"]}, "does not read its own layout"),
        (true, {"mine": {}}, "finds no weights"),
        (true, {"mine": {"lr": 0.1}}, "lr among the weights is no tensor"),
        (Importer("greedy", lambda content: Imported({}, "all"), "all"), content, "must give None"),
        (Importer("silent", read_mine), content, "say in summary"),
    ]:
        with pytest.raises(AssertionError, match=said):
            check_importer(importer, held)


def one_table(columns: int = 2, cells: int = 2) -> Table:
    heads = [words("run"), *[figures(f"{at}") for at in range(1, columns)]]
    return Table("Some", heads, [[Cell("a"), *[Cell("1", 1.0)] * (cells - 1)]])


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda _: [one_table(cells=3)], "under 2 columns"),
        (lambda _: ["text"], "not smoothctl.Table"),
        (lambda _: [], "it shows nothing"),
    ],
)
def test_tables_that_cannot_be_shown_are_caught(build: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_table(ReportTable("mine", build, "of mine"))


def test_a_table_that_changes_is_caught() -> None:
    titles = iter("abcdefgh")
    changing = ReportTable("mine", lambda _: [Table("t", [words("run")], [[Cell(next(titles))]])], "of mine")
    with pytest.raises(AssertionError, match="another table the second time"):
        check_table(changing)


def test_plots_that_show_nothing_are_caught() -> None:
    from matplotlib.figure import Figure

    with pytest.raises(AssertionError, match="has no description"):
        check_plot(ReportPlot("mine", lambda _: Figure(), "of mine", caption="Mine"))
    with pytest.raises(AssertionError, match="the figure is empty"):
        check_plot(ReportPlot("mine", lambda _: Figure(), "of mine", caption="Mine", description="Nothing."))


@pytest.mark.parametrize("kind", ["table", "plot"])
def test_what_reports_show_by_themselves_passes(kind: str) -> None:
    from smoothctl.base.errors import SmoothctlError
    from smoothctl.reporting.output import parts

    report, checked = tiny_report(), []
    for each in {"table": parts.tables, "plot": parts.plots}[kind]().values():
        try:
            has_something = bool(each.draw(report) if kind == "plot" else each.build(report))
        except SmoothctlError:  # a plot of what these logs lack
            continue
        if has_something:
            (check_table if kind == "table" else check_plot)(each, report)
            checked.append(each.name)
    assert {"table": "certified", "plot": "curve"}[kind] in checked
    assert len(checked) >= 2


def test_trackers_that_fail_are_caught(tmp_path: Any) -> None:
    from contextlib import nullcontext

    class Once:
        def __init__(self, run: Any):
            (run / "log").mkdir()

        def __enter__(self) -> Any:
            return lambda event: None

        def __exit__(self, *_: object) -> None:
            pass

    with pytest.raises(AssertionError, match="yields None"):
        check_tracker(Tracker("mine", lambda run: nullcontext(None), summary="mine"))  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError, match="which is not installed"):
        check_tracker(Tracker("mine", Once, package="no_such_package", summary="mine"))
    with pytest.raises(FileExistsError):
        check_tracker(Tracker("mine", Once, summary="mine"), tmp_path)
    check_tracker(registry().find("tracker", "tensorboard").value)


def test_pytest_finds_the_fixtures_by_itself(tiny_batch: Batch, tiny_network: nn.Module, smoothctl_run: Any) -> None:
    assert tiny_network(tiny_batch.x).shape == (32, 4)
    assert (smoothctl_run("--method stability") / "certify.tsv").is_file()


def test_pytest_loads_nothing_heavy_where_smoothctl_is_installed() -> None:
    code = (
        "import sys, smoothctl.testing.fixtures\n"
        "print([name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
