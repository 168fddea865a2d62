"""What ``task.toml`` says, as Harbor writes it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rewardkit.errors import SuiteError

_VERSION = "1"  # what stands before the point in the versions that are read


class _Section(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Package(_Section):
    name: str = ""


class _Verifier(_Section):
    timeout_sec: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    env: dict[str, str] = {}
    collect: list[dict[str, Any]] = []


class _Environment(_Section):
    docker_image: str | None = None
    os: str = "linux"
    gpus: int | None = None
    tpu: dict[str, Any] | None = None
    mcp_servers: list[dict[str, Any]] = []
    healthcheck: dict[str, Any] | None = None
    workdir: str | None = None


class TaskFile(_Section):
    """The parts of ``task.toml`` that matter for grading; the others are not read."""

    schema_version: str = "1.0"
    task: _Package = _Package()
    metadata: dict[str, Any] = {}
    verifier: _Verifier = _Verifier()
    environment: _Environment = _Environment()
    steps: list[dict[str, Any]] = []

    @model_validator(mode="before")
    @classmethod
    def _with_version(cls, values: object) -> object:
        if isinstance(values, dict) and "version" in values:
            return {"schema_version": values["version"], **values}
        return values

    def needs(self) -> list[str]:
        """Return what the task needs that is not here, and why."""
        environment = self.environment
        needs = {
            f"Windows, for [environment] has os = {environment.os!r}": environment.os != "linux",
            "a GPU, for [environment] has gpus": bool(environment.gpus),
            "a TPU, for [environment] has tpu": environment.tpu is not None,
            "a container's services, for [environment] has mcp_servers": bool(environment.mcp_servers),
            "a running container, for [environment] has a healthcheck": environment.healthcheck is not None,
            "several containers one after the other, for it has [[steps]]": bool(self.steps),
            "a running container, for [verifier] collects from it": bool(self.verifier.collect),
            f"the variables {', '.join(self.verifier.env)} of [verifier]": bool(self.verifier.env),
        }
        return [need for need, is_needed in needs.items() if is_needed]


def read_task_file(path: Path) -> TaskFile:
    """Return what a ``task.toml`` says.

    Raises:
        SuiteError: It is missing, no TOML, of another version, or a value is of the wrong kind.
    """
    try:
        values: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise SuiteError(f"task {str(path.parent)!r:.200}: no task.toml can be read: {wrong.strerror}") from None
    except ValueError as wrong:
        raise SuiteError(f"{str(path)!r:.200}: no TOML: {wrong}") from None
    version = values.get("schema_version", values.get("version", _VERSION))
    if str(version).split(".")[0] != _VERSION:
        raise SuiteError(f"{str(path)!r:.200}: schema_version {version!r:.40}: tasks of version 1 are read")
    try:
        return TaskFile.model_validate({**values, "schema_version": str(version)})
    except ValidationError as wrong:
        first = wrong.errors()[0]
        path_in_file = ".".join(map(str, first["loc"]))
        raise SuiteError(f"{str(path)!r:.200}: {path_in_file} = {first['input']!r:.80}: {first['msg']}") from None
