"""A small real model behind an OpenAI-compatible server on loopback, for tests: SmolLM2-135M-Instruct by transformers.

``ModelServer`` runs this file as a program. It writes one reply at a time, held to a JSON schema by llguidance, and
answers ``POST /v1/chat/completions`` and ``GET /v1/models``. Log-probabilities are those of what was drawn from, after
temperature and schema; a token that the schema leaves no choice about has 0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "smollm2-135m-instruct"
_CONTEXT = 4096  # tokens of a prompt with its reply
_START_S = 600.0


class ModelServer:
    """For a ``with`` block. The server ends with it, and by itself when this process has ended.

    Attributes:
        model: The name under which the model is served.
        base_url: Where it listens, as judges take it.

    Raises:
        RuntimeError: It did not start; the message is what it said at last.
    """

    model = NAME
    base_url: str

    def __enter__(self) -> ModelServer:
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        patience = threading.Timer(_START_S, self._process.kill)
        patience.start()
        assert self._process.stdout is not None
        port = self._process.stdout.readline().decode().strip()
        patience.cancel()
        if not port:
            self._log.seek(0)
            words = self._log.read().decode(errors="replace").strip().splitlines()
            self.__exit__()
            raise RuntimeError(words[-1] if words else "the server ended without a word")
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


class _RefusedError(Exception):
    """An answer with an error: its status, its words, OpenAI's code for it."""


class _Model:
    def __init__(self) -> None:
        import llguidance.hf
        import torch

        from trainer_adapter.models import load_model

        torch.set_num_threads(1)  # more than there are idle cores make it many times slower
        self._model, self._tokenizer = load_model("builtin:smollm2-135m", on_cpu=True)
        self._grammars = llguidance.hf.from_tokenizer(self._tokenizer)
        self._turn = threading.Lock()

    def complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a completion in OpenAI's shape."""
        if asked["model"] != NAME:
            raise _RefusedError(404, f"there is no model {asked['model']!r}; there is {NAME!r}", "model_not_found")
        if not all(isinstance(message["content"], str) for message in asked["messages"]):
            raise _RefusedError(400, "this model takes text alone", "invalid_value")
        prompt = self._tokenizer.apply_chat_template(asked["messages"], add_generation_prompt=True, return_dict=False)
        room = _CONTEXT - len(prompt)
        if room < 1:
            words = f"the prompt has {len(prompt)} tokens, and the model's context is {_CONTEXT}"
            raise _RefusedError(400, words, "context_length_exceeded")
        grammar = self._grammar(asked.get("response_format") or {})
        with self._turn:
            tokens, whole = self._write(prompt, grammar, min(asked.get("max_tokens") or room, room), asked)
        text = self._tokenizer.decode([token for token, _ in tokens])
        return {
            "object": "chat.completion",
            "model": NAME,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop" if whole else "length",
                    "logprobs": {"content": [entry for _, entry in tokens]} if asked.get("logprobs") else None,
                }
            ],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)},
        }

    def _grammar(self, form: dict[str, Any]) -> Any:
        """Return what holds a reply to its schema; None for free text."""
        from llguidance import LLMatcher

        if form.get("type", "text") == "text":
            return None
        schema = json.dumps(form["json_schema"]["schema"])
        grammar = LLMatcher(self._grammars, LLMatcher.grammar_from_json_schema(schema, {"whitespace_flexible": False}))
        if grammar.is_error():
            raise _RefusedError(400, f"no reply can be held to the schema: {grammar.get_error()}", "unsupported_schema")
        return grammar

    def _write(
        self, prompt: list[int], grammar: Any, limit: int, asked: dict[str, Any]
    ) -> tuple[list[tuple[int, dict[str, Any]]], bool]:
        """Return the tokens with what is told of each, and whether the reply is whole."""
        import torch

        written: list[tuple[int, dict[str, Any]]] = []
        unread, past = prompt, None
        while len(written) < limit:
            with torch.inference_mode():
                read = self._model(torch.tensor([unread]), past_key_values=past, use_cache=True, logits_to_keep=1)
            past = read.past_key_values
            chances = self._chances(read.logits[0, -1].float(), grammar, asked.get("temperature", 1.0))
            greedy = asked.get("temperature") == 0
            token = int(chances.argmax() if greedy else torch.multinomial(chances.exp(), 1))
            if token == self._tokenizer.eos_token_id:
                return written, True
            written.append((token, self._entry(token, chances, asked.get("top_logprobs") or 0)))
            unread = [token]
            if grammar is not None:
                grammar.consume_token(token)
                forced = grammar.compute_ff_tokens()
                grammar.consume_tokens(forced)
                written += [(one, self._entry(one)) for one in forced]
                unread = [token, *forced]
                if grammar.is_stopped():
                    return written, True
        return written, False

    def _chances(self, logits: Any, grammar: Any, temperature: float) -> Any:
        """Return the log-probabilities of the tokens that may come next."""
        import numpy as np
        import torch

        if grammar is not None:
            allowed = np.unpackbits(np.frombuffer(grammar.compute_bitmask(), np.uint8), bitorder="little")
            logits = logits.masked_fill(torch.from_numpy(allowed[: len(logits)] == 0), -torch.inf)
        return torch.log_softmax(logits / (temperature or 1.0), dim=-1)

    def _entry(self, token: int, chances: Any = None, top: int = 0) -> dict[str, Any]:
        """Return what is told of a token: its text, its log-probability, and the likeliest in its place."""
        entry = {"token": self._tokenizer.decode([token]), "logprob": 0.0 if chances is None else float(chances[token])}
        likeliest = [] if chances is None else chances.topk(top).indices.tolist()
        others = [
            {"token": self._tokenizer.decode([one]), "logprob": max(float(chances[one]), -9999.0)} for one in likeliest
        ]
        return {**entry, "top_logprobs": others or [dict(entry)]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: _Model

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        try:
            status, said = 200, self._said(body)
        except _RefusedError as refused:
            status, words, code = refused.args
            said = {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": code}}
        sent = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def _said(self, body: bytes) -> dict[str, Any]:
        if (self.command, self.path) == ("POST", "/v1/chat/completions"):
            return self.served.complete(json.loads(body))
        if (self.command, self.path) == ("GET", "/v1/models"):
            return {"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "local"}]}
        raise _RefusedError(404, f"there is no {self.command} {self.path}", "unknown_url")

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve until the program that started this one has ended; the port is printed when the model is loaded."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _Handler.served = _Model()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
