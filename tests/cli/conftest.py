from __future__ import annotations

import pytest

from tests.cli.running import Runner, runner


@pytest.fixture
def evidex(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return runner(monkeypatch, capsys)
