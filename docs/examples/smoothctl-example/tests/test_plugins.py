from smoothctl_example.label_smoothing import LabelSmoothing
from smoothctl_example.logistic import register_noises
from smoothctl_example.mlp import register_architectures
from smoothctl_example.stripes import register_datasets
from smoothctl_example.two_chances import register_rules

from smoothctl.testing import check_architecture, check_dataset, check_method, check_noise, check_rule, run_command


def test_each_plugin_keeps_its_contract():
    check_method(LabelSmoothing, {"samples": 3})
    check_architecture(*register_architectures())
    check_dataset(*register_datasets())
    check_noise(*register_noises())
    check_rule(*register_rules())


def test_they_work_together(tmp_path):
    run_command("train --method label-smoothing --dataset stripes --noise logistic --out run", tmp_path)
    assert len((tmp_path / "run" / "loss.csv").read_text().splitlines()) == 5
    assert "L1 radius" in run_command("certify run --n 200 --max 5 --rule two-chances", tmp_path)
