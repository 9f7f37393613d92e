"""`cycleback transfer`: what one video has, given to the others through the alignment."""

import typer

from cycleback.cli.transfer_labels import labels
from cycleback.cli.transfer_sound import sound

transfer = typer.Typer(
    name="transfer", help="Carry labels or sound over to other videos.", no_args_is_help=True
)
for command in (labels, sound):
    transfer.command()(command)
