"""Damage every file of a gallery at random and see that no answer is silently wrong.

    python benchmarks/damage.py [--cases 400] [--commands 12] [--live 60] [--seed 0]

Each case damages one file or folder of a fresh copy (flipped bits, runs of bytes, cut short, grown, removed, emptied,
swapped with another file, an older state of itself, a whole folder gone), then verifies it, searches it by text and,
for a share, repairs it. Some go through the commands, some through a server that is asked all the while. Outcomes:

    healed   the same answer, byte by byte
    told     one line that says what is damaged, exit code 2 or HTTP status 503
    silent   anything else: another answer, a traceback, a crash, a gallery that `verify` calls sound and search refuses

Exits with an error if anything is silent.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from damages import QUESTIONS, Damage, make_gallery, plan

Fate = Literal["healed", "told", "silent"]
_SETTLING = 0.06
_EVIDEX = [sys.executable, "-m", "evidex"]


@dataclass
class Counts:
    """Outcomes by way of asking, and by kind of damage; what was silent in words."""

    ways: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    files: Counter[tuple[str, str]] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)

    def add(self, way: str, damage: Damage, outcome: Fate, why: str = "") -> None:
        self.ways[way, outcome] += 1
        self.kinds[damage.kind, outcome] += 1
        self.files[damage.sort, outcome] += 1
        if outcome == "silent":
            self.silent.append(f"{way}: {damage.kind} of {damage.name}: {why}")
            print(self.silent[-1], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400, help="through the Python interface")
    parser.add_argument("--commands", type=int, default=12, help="through evidex search and evidex verify")
    parser.add_argument("--live", type=int, default=60, help="under a server that is being asked")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("evidex.gallery").addHandler(logging.NullHandler())
    logging.getLogger("evidex.gallery").propagate = False
    rng = np.random.default_rng(options.seed)
    counts = Counts()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_gallery(root)
        load_once()
        expected = _asked(root / "sound")
        damages = plan(root, rng)
        for number in range(options.cases):
            _through_python(root, next(damages), expected, counts, rng)
            if number % 50 == 49:
                print(f"{number + 1} of {options.cases} cases, {len(counts.silent)} silent", flush=True)
        alone = _search_command(root / "sound") if options.commands else None
        for _ in range(options.commands):
            _through_commands(root, next(damages), alone, counts)
        if options.live:
            _through_a_server(root, damages, options.live, counts)
    _print(counts, time.monotonic() - started)
    return 1 if counts.silent else 0


def load_once() -> None:
    """Let models of the same bytes be loaded once: most cases leave the model alone, and loading takes longest."""
    from evidex.encoders import model as models

    real = models.load_model
    known: dict[bytes, models.Model] = {}

    def load(path: Path) -> models.Model:
        content = path.read_bytes()
        if content not in known:
            if len(known) > 1:
                known.popitem()
            known[content] = real(path)
        return known[content]

    models.load_model = load  # type: ignore[assignment]


def _fresh(root: Path) -> Path:
    """A copy of the sound gallery that was used before, so that its files are known to be as sealed."""
    from evidex.retrieval.gallery import Gallery

    folder = root / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "sound", folder)
    time.sleep(_SETTLING)
    Gallery.open(folder).rows([0])
    return folder


def _asked(folder: Path) -> str:
    """The answers without their timings."""
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.retriever import Retriever

    answers = Retriever(Gallery.open(folder)).search_batch(texts=list(QUESTIONS), top=8)
    return json.dumps([_plain(answer.json()) for answer in answers], sort_keys=True)


def _plain(answer: Any) -> Any:
    return {key: value for key, value in answer.items() if not key.startswith("timings")}


def _through_python(root: Path, damage: Damage, expected: str, counts: Counts, rng: np.random.Generator) -> None:
    from evidex.retrieval.verifying.repair import repair
    from evidex.retrieval.verifying.verify import verify

    folder = _fresh(root)
    damage.inflict(folder)
    verified, report = _tried(lambda: verify(folder))
    sound = verified == "healed" and report.sound
    unseen = sound and damage.must_show
    counts.add("verify", damage, "silent" if unseen or verified == "silent" else _told(sound), str(report))
    searched, found = _tried(lambda: _asked(folder))
    why = str(found)[:300]
    if searched == "healed" and found != expected:
        searched, why = "silent", f"another answer {_difference(expected, found)}"
    if searched == "told" and sound:
        searched, why = "silent", f"verify calls it sound, search says {found}"
    counts.add("search", damage, searched, why)
    if rng.random() < 0.3:
        shutil.rmtree(folder, ignore_errors=True)
        damage.inflict(_fresh(root))
        _repaired(damage, counts, expected, _tried(lambda: repair(folder)), lambda: _asked(folder))


def _repaired(damage: Damage, counts: Counts, expected: str, mended: tuple[Fate, Any], ask: Callable[[], str]) -> None:
    """A repair that says all is well must lead to the same answer; one that says more is to be done may not."""
    outcome, report = mended
    why = str(report)[:300]
    if outcome == "healed" and report.sound:
        searched, found = _tried(ask)
        if searched != "healed" or found != expected:
            outcome, why = "silent", f"repair calls it sound, but {searched}: {_difference(expected, found)}"
    elif outcome == "healed":
        outcome = "told"
    counts.add("repair", damage, outcome, why)


def _tried(ask: Callable[[], Any]) -> tuple[Fate, Any]:
    """What was found, or the error: told where it is one of ours, of one line and with exit code 2."""
    from evidex import errors

    try:
        return "healed", ask()
    except errors.EvidexError as error:
        fits = errors.outcome(error).exit_code == 2 and "\n" not in str(error)
        return ("told" if fits else "silent"), error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "silent", f"{type(error).__name__}: {error}"


def _difference(expected: str, found: Any) -> str:
    if not isinstance(found, str):
        return str(found)[:200]
    place = next((i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), 0)
    return f"…{expected[max(place - 30, 0) : place + 60]}… against …{found[max(place - 30, 0) : place + 60]}…"


def _through_commands(root: Path, damage: Damage, expected: Any, counts: Counts) -> None:
    folder = _fresh(root)
    damage.inflict(folder)
    before = _command("verify", "--gallery", str(folder))
    wrong = before.returncode not in (0, 2) or "Traceback" in before.stderr
    counts.add("evidex verify", damage, "silent" if wrong else _told(before.returncode == 0), before.stderr[-300:])
    run = _search_command(folder)
    lines = [line for line in run.stderr.splitlines() if line.startswith("evidex: error:")]
    outcome: Fate = "silent"
    if run.returncode == 0:
        same = _plain(json.loads(run.stdout)) == _plain(json.loads(expected.stdout))
        outcome = "healed" if same else "silent"
    elif run.returncode == 2 and len(lines) == 1 and "Traceback" not in run.stderr and before.returncode == 2:
        outcome = "told"
    counts.add("evidex search", damage, outcome, f"exit code {run.returncode}, {run.stdout[-300:]} {run.stderr[-300:]}")


def _told(sound: bool) -> Fate:
    return "healed" if sound else "told"


def _search_command(folder: Path) -> subprocess.CompletedProcess[str]:
    return _command("search", QUESTIONS[0], "--gallery", str(folder), "--top", "8", "--json")


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_EVIDEX, *words], capture_output=True, text=True, check=False)


def _through_a_server(root: Path, damages: Iterator[Damage], cases: int, counts: Counts) -> None:
    """Damage the gallery of a running server again and again; in between it is put back and must recover."""
    folder = _fresh(root)
    with Served(folder) as served:
        expected = served.ask()
        for number in range(cases):
            damage = next(damages)
            with served.busy():
                damage.inflict(folder)
                for moment in (0.0, 0.5):
                    time.sleep(moment)
                    status, answer = served.ask()
                    same = (status, answer) == expected
                    outcome: Fate = "healed" if same else "told" if status == 503 else "silent"
                    counts.add("server", damage, outcome, f"{status}: {_difference(str(expected[1]), answer)}")
            if served.wrong:
                counts.add("server", damage, "silent", f"under load: {served.wrong[0]}")
                served.wrong.clear()
            shutil.copytree(root / "sound", folder, dirs_exist_ok=True)
            if not served.recovers(expected):
                counts.add("server", damage, "silent", f"case {number}: it does not recover: {served.ask()}")
                return


class Served:
    """A server of a gallery in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [*_EVIDEX, "serve", "--gallery", str(folder), "--port", "0", "--refresh", "0.2"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.wrong: list[str] = []
        self._expected: tuple[int, str] | None = None

    def __enter__(self) -> Served:
        assert self._process.stdout is not None
        self._address = self._process.stdout.readline().split(" at ")[1].split()[0]
        self.recovers(None)
        self._expected = self.ask()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)

    def ask(self) -> tuple[int, str]:
        """Status and answer; 0 where the server is not there any more."""
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        body = json.dumps({"text": QUESTIONS[0], "top": 8}).encode()
        request = Request(f"{self._address}search", body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=30) as reply:
                return reply.status, json.dumps(_plain(json.loads(reply.read())), sort_keys=True)
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, f"the server is gone ({error}), exit code {self._process.poll()}"

    def busy(self) -> Any:
        """While this lasts, two clients ask all the time; what is neither the same answer nor a 503 is kept."""
        import threading
        from contextlib import contextmanager

        @contextmanager
        def asking() -> Iterator[None]:
            over = threading.Event()

            def client() -> None:
                while not over.is_set():
                    status, answer = self.ask()
                    if (status, answer) != self._expected and status != 503:
                        self.wrong.append(f"{status}: {answer[:200]}")

            threads = [threading.Thread(target=client) for _ in range(2)]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                over.set()
                for thread in threads:
                    thread.join()

        return asking()

    def recovers(self, expected: tuple[int, str] | None) -> bool:
        for _ in range(300):
            found = self.ask()
            if (found == expected) if expected is not None else found[0] == 200:
                return True
            time.sleep(0.05)
        return False


def _print(counts: Counts, seconds: float) -> None:
    for title, table in (("asked through", counts.ways), ("damage", counts.kinds), ("file", counts.files)):
        print(f"\n{title:28}{'healed':>9}{'told':>9}{'silent':>9}")
        for name in sorted({name for name, _ in table}):
            print(f"{name:28}" + "".join(f"{table[name, outcome]:9}" for outcome in ("healed", "told", "silent")))
    print(f"\n{sum(counts.ways.values())} outcomes in {seconds:.0f} s, {len(counts.silent)} silent")


if __name__ == "__main__":
    sys.exit(main())
