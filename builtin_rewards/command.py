"""The command ``rewardkit``. It starts here, so that importing this package finds a foreign rewardkit first."""

from rewardkit.cli import main as main

if __name__ == "__main__":
    main()
