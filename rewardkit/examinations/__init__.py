"""What ``check`` examines of a data set's rows before a training, by completions whose worth is known."""
