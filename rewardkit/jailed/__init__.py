"""What a reward runs in a jail: code of the model, rewards given as text, commands over a folder."""
