"""What the tests of a plugin call: a noise is held to its law and its radius, a stopping rule to its guarantee.

from smoothctl.testing import check_noise, check_rule

def test_my_noise():
    check_noise(my_noise)

def test_my_rule():
    check_rule(my_rule)
"""

from smoothctl.testing.noises import check_noise as check_noise
from smoothctl.testing.rules import check_rule as check_rule
