"""`cycleback transfer`: what one video has, given to the others through the alignment."""

import typer

from cycleback.cli.transfer_labels import labels
from cycleback.cli.transfer_sound import sound

transfer = typer.Typer(help="Carry labels or sound of one video over to others.", no_args_is_help=True)


@transfer.callback()
def options() -> None:
    """Carry labels or sound of one video over to others."""


for command in (labels, sound):
    transfer.command()(command)
