"""`python -m accelbench` is `accelbench`."""

from accelbench.cli.main import main

main()
