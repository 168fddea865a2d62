"""A machine without a jail: Python imports this module as it starts, where this folder is in ``PYTHONPATH``.

Every process of a test believes that it runs on a processor for which the jail has no system calls, so no jail can be
made, as on macOS. All else stays as it is. `make test-no-jail` and `tests/rewardkit/cli/test_platforms.py` use it.
"""

import platform

platform.machine = lambda: "riscv64"
