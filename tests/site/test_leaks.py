"""Nothing of the assignments' solutions is on the pages, in their sources or among the downloads."""

from mesa_lib.grading.leakscan import find_leaks
from mesa_lib.grading.source import read_assignments


def test_no_line_of_a_solution_is_on_the_site(site):
    assert find_leaks(read_assignments().values(), [site]) == []


def test_every_assignment_can_be_downloaded(site):
    downloads = {path.name for path in (site / "_downloads").rglob("*.ipynb")}
    assert {f"{name}.ipynb" for name in read_assignments()} <= downloads
