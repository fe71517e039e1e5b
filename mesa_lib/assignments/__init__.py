"""Course assignments, the students' side: checks that run in the notebook, anywhere, in seconds.

    from mesa_lib.assignments import check
    check("q1", lsa_step=lsa_step)

A *case* is a function of a student's work and a random generator. Public cases are in `mesa_lib.assignments.public`;
the hidden ones are in no package. `mesa_lib.grading` runs both, out of the student's reach. Nothing here needs torch.
"""

from mesa_lib.assignments.cases import Case, LocalStudent, MistakeError, Student, case
from mesa_lib.assignments.checking import check, once_written
from mesa_lib.assignments.expectations import expect, expect_array, expect_close, expect_number
from mesa_lib.assignments.values import NotWrittenError

__all__ = [
    "Case",
    "LocalStudent",
    "MistakeError",
    "NotWrittenError",
    "Student",
    "case",
    "check",
    "expect",
    "expect_array",
    "expect_close",
    "expect_number",
    "once_written",
]
