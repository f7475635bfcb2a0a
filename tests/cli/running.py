"""The command line in this process, as ``main`` runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from evidex.cli.app import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line of a refusal."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert self.err.startswith("evidex: error: ")
        assert self.err.count("\n") == 1
        return self.err.strip()


Runner = Callable[..., Done]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["evidex", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capsys.readouterr()
        return Done(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
