"""Send requests made up from the server's own schema, and count what comes back.

    python benchmarks/schema.py --requests 2000 [--gallery DIR]

Without a gallery a small one is rendered. Ends with status 1 if any answer is a 5xx or not as the schema says.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--gallery", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from evidex.server.settings import Settings
    from tests.server.fuzz import run
    from tests.server.places import live, make_gallery

    with tempfile.TemporaryDirectory() as folder:
        gallery = options.gallery or make_gallery(Path(folder)).path
        with live(Settings(gallery, port=0)) as address:
            report = run(address, requests=options.requests, seed=options.seed)
    for failure in report.failures[:10]:
        print(failure, file=sys.stderr)
    counts = {str(status): count for status, count in sorted(report.by_status.items())}
    print(json.dumps({"requests": report.requests, "by_status": counts, "failures": len(report.failures)}, indent=1))
    return 1 if report.failures or any(status >= 500 for status in report.by_status) else 0


if __name__ == "__main__":
    sys.exit(main())
