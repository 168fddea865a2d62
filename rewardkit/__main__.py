"""``python -m rewardkit``: the same program as ``rewardkit``."""

from rewardkit.cli import main

if __name__ == "__main__":
    main()
