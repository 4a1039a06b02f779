"""What the tests of a plugin call: each check raises AssertionError with what does not fit.

from smoothctl.testing import check_method, check_noise

def test_my_method():
    check_method(MyMethod)

def test_my_noise():
    check_noise(my_noise)
"""

from smoothctl.testing.backends import check_backend as check_backend
from smoothctl.testing.commands import run_command as run_command
from smoothctl.testing.datasets import check_dataset as check_dataset
from smoothctl.testing.importers import check_importer as check_importer
from smoothctl.testing.methods import check_method as check_method
from smoothctl.testing.methods import tiny_batch as tiny_batch
from smoothctl.testing.methods import tiny_network as tiny_network
from smoothctl.testing.networks import check_architecture as check_architecture
from smoothctl.testing.noises import check_noise as check_noise
from smoothctl.testing.reports import check_plot as check_plot
from smoothctl.testing.reports import check_table as check_table
from smoothctl.testing.reports import tiny_report as tiny_report
from smoothctl.testing.rules import check_rule as check_rule
from smoothctl.testing.trackers import check_tracker as check_tracker
