"""How a model behind an OpenAI-compatible server is asked: one request well sent, or one error that says why not."""
