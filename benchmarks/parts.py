"""What joining costs: one server with all rows against two with half of them each, on the same machine.

    python benchmarks/parts.py --rows 200000 --seconds 12

Both halves share the machine's cores, so nothing is gained here; what is lost is what a query pays for travelling. The
servers take turns. Ends with status 1 if an answer differs from that of the whole, or at any error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from itertools import islice
from pathlib import Path
from urllib.request import Request, urlopen

from serve import Load, ask, distinct_texts, make_gallery, serving

_COMPARED = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="a multiple of 40,000")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=12.0, help="of load on each server and number of clients")
    parser.add_argument("--rounds", type=int, default=4, help="turns the servers take")
    options = parser.parse_args()
    half = options.rows // 2
    with tempfile.TemporaryDirectory() as folder:
        places = {"whole": range(options.rows), "first": range(half), "second": range(half, options.rows)}
        for name, rows in places.items():
            make_gallery(Path(folder) / name, rows, options.dim)
        with (
            serving(Path(folder) / "whole") as whole,
            serving(Path(folder) / "second") as second,
            serving(Path(folder) / "first", "--part", f"http://127.0.0.1:{second.port}") as joined,
        ):
            ports = {"whole": whole.port, "joined": joined.port}
            texts = distinct_texts()
            compared = list(islice(texts, _COMPARED))
            differing = sum(found(whole.port, text) != found(joined.port, text) for text in compared)
            report: dict[str, object] = {"rows": options.rows, "compared": _COMPARED, "differing": differing}
            errors = 0
            for clients in (1, 32):
                loads = {name: Load() for name in ports}
                for _ in range(options.rounds):
                    for name, port in ports.items():
                        seconds = options.seconds / options.rounds
                        loads[name].add(asyncio.run(ask(port, clients, texts, seconds=seconds)))
                rates = {name: load.report() for name, load in loads.items()}
                ratio = rates["joined"]["requests_per_second"] / rates["whole"]["requests_per_second"]
                report[f"{clients} clients"] = rates | {"joined over whole": round(ratio, 3)}
                errors += sum(load.errors for load in loads.values())
    print(json.dumps(report, indent=1))
    return 0 if errors == differing == 0 else 1


def found(port: int, text: str) -> tuple[list[str], list[float], int]:
    """Paths of the hits, scores and uncertainty to six digits, and the number of rows that were searched."""
    body = json.dumps({"text": text, "top": 10, "mode": "plain"}).encode()
    request = Request(f"http://127.0.0.1:{port}/search", body, {"Content-Type": "application/json"})
    with urlopen(request) as reply:
        answer = json.load(reply)
    numbers = [round(value, 6) for value in (answer["uncertainty"], *(hit["score"] for hit in answer["hits"]))]
    return [hit["path"] for hit in answer["hits"]], numbers, answer["searched"]


if __name__ == "__main__":
    raise SystemExit(main())
