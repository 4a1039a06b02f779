"""The names of smoothctl.testing; each is imported when it is first used."""

from .backends import check_backend as check_backend
from .commands import run_command as run_command
from .datasets import check_dataset as check_dataset
from .importers import check_importer as check_importer
from .methods import check_method as check_method
from .methods import tiny_batch as tiny_batch
from .methods import tiny_network as tiny_network
from .networks import check_architecture as check_architecture
from .noises import check_noise as check_noise
from .reports import check_plot as check_plot
from .reports import check_table as check_table
from .reports import tiny_report as tiny_report
from .rules import check_rule as check_rule
from .trackers import check_tracker as check_tracker
