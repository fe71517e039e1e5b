"""The checker of annotations in tests: beartype, with Python's own rule that an int may stand for a float (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
