"""`python -m unflip` is the command `unflip`."""

from unflip.cli import main

main()
