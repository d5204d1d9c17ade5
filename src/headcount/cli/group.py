"""Command groups whose commands are files of a folder, imported on use."""

from __future__ import annotations

from typing import Any

import click

from headcount.errors import UnknownName
from headcount.registry import Registry


class Files(click.Group):
    """A group whose commands are the members of a registry."""

    def __init__(self, *rest: Any, members: Registry[click.Command], **options: Any) -> None:
        super().__init__(*rest, **options)
        self.members = members

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.members.names())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.members[name] if name in self.members else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.members and not args[0].startswith("-"):
            raise click.UsageError(str(UnknownName(self.members.what, args[0], self.members.names())))
        return super().resolve_command(ctx, args)
