"""What the tests of a plugin call: each check raises AssertionError with what does not fit.

from smoothctl.testing import check_method, check_noise

def test_my_method():
    check_method(MyMethod)

def test_my_noise():
    check_noise(my_noise)
"""

import lazy_loader

# pytest imports this package for its fixtures wherever smoothctl is installed, so nothing heavy is imported here.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
