"""`python -m gonogo.testing`: runs of the core against a simulated world."""

from gonogo.testing.campaign import main

raise SystemExit(main())
