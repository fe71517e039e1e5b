"""`python -m mesa_lib.grading`."""

import sys

from mesa_lib.grading.cli import main

sys.exit(main())
