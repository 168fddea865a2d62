"""What is done with a record after the scoring: rewards are run again, compared, verified and changed."""
