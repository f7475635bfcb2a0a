"""A command that takes each option once: of two values the first would be lost, and nobody told."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption


class Verb(TyperCommand):
    """Refuses an option that is given twice and takes one value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = Counter(self.make_parser(ctx).parse_args(args=list(args))[2])
        for option, count in given.items():
            if isinstance(option, TyperOption) and count > 1 and not (option.multiple or option.is_flag):
                ctx.fail(f"{max(option.opts, key=len)} is given {count} times and takes one value; give it once")
        return super().parse_args(ctx, args)
