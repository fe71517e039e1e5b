"""Course assignments, the instructors' side: build them, grade them, prove that they grade.

    python -m mesa_lib.grading --help

An assignment is a folder of `assignments/src`: a text with solutions, hidden cases, mutants and a rubric. Students get
the notebook that `build` makes of it. `grade` runs their code in another process, in a sandbox: values go in, values
come out, and no case ever enters that process. Needs the packages of `pip install mesa-lib[grading]`.
"""
