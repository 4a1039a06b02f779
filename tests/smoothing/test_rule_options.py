"""Rules of other packages: found when they are there, chosen by an option, set aside where an option is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from smoothctl import UsageError, certify
from smoothctl.smoothing.rules import choose_rule, rule_options
from tests.conftest import PluginMaker
from tests.networks import Threshold, grey_images

EXAMPLE = Path(__file__).parents[2] / "docs/examples/smoothctl-example/smoothctl_example/two_chances.py"


def test_a_rule_that_comes_later_is_found_and_chosen_by_its_option(make_plugin: PluginMaker) -> None:
    assert "first" not in rule_options().model_fields
    make_plugin("later", EXAMPLE.read_text())
    assert choose_rule(None, {"first": 0.5})[0].name == "two-chances"
    (certificate,) = certify(Threshold(), grey_images(1, 0.9), sigma=0.5, n=1000, first=0.5)
    assert certificate.n == 500


def test_options_of_two_rules_do_not_go_together(make_plugin: PluginMaker) -> None:
    make_plugin("later", EXAMPLE.read_text())
    with pytest.raises(UsageError, match="two stopping rules; choose one"):
        choose_rule(None, {"first": 0.5, "radii": [0.1]})


def test_a_rule_whose_option_is_taken_is_set_aside(
    make_plugin: PluginMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plugin("greedy", EXAMPLE.read_text().replace("first:", "radii:").replace("options.first", "options.radii"))
    assert rule_options() is rule_options()
    assert capsys.readouterr().err.count("the option radii of the rule two-chances is taken") == 1
    with pytest.raises(UsageError, match="unknown rule 'two-chances'"):
        choose_rule("two-chances", {})
