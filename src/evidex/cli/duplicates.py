"""evidex duplicates: which pictures are in a gallery more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    from evidex.retrieval.copies import CopyGroup


def command(
    gallery: Annotated[str, typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX.", metavar="PLACE")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the groups as JSON.")] = False,
) -> None:
    """List pictures that are in a gallery more than once: the same content, or encoded again or resized."""
    from evidex.cli.console import print_json
    from evidex.retrieval.copies import CopyIndex
    from evidex.retrieval.gallery import Gallery

    opened = Gallery.open(gallery)
    index = CopyIndex(opened)
    groups = list(index.groups())
    more = sum(len(group.copies) for group in groups)
    if as_json:
        content = [_content(group) for group in groups]
        print_json({"groups": content, "copies": more, "rows": len(opened), "without_hash": index.unhashed})
        return
    for group in groups:
        say(group.row.name)
        for place in _content(group)["copies"]:
            say(f"  {'same' if place['exact'] else 'near'}  {place['path']}")
    pictures = f"{len(groups)} picture{'s are' if len(groups) != 1 else ' is'} there more than once"
    say(f"{pictures}, {more} of {len(opened)} rows are copies")
    if index.unhashed:
        say(
            f"{index.unhashed} rows were indexed before copies were looked for: of these only such with the same "
            "content are told; index into a new gallery to find others"
        )


def _content(group: CopyGroup) -> dict[str, Any]:
    from dataclasses import asdict

    from evidex.retrieval.hits import Hit

    hit = Hit.of(group.row, 1, 1.0, group.copies)
    return {"id": hit.id, "path": hit.path, "exact": group.is_exact, "copies": [asdict(place) for place in hit.copies]}
