"""The public cases of each assignment, one module each: `QUESTIONS`, `VARIANTS` and cases that know no answer."""
