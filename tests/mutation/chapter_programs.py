"""A chapter's check cells as a program: with what they need of the cells above them, without what else is asserted."""

import ast
import functools
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.mutation.runner import ROOT
from tools.law import Chapter


class Names(ast.NodeVisitor):
    """The names that a piece of code binds at its top, and those that it looks up anywhere."""

    def __init__(self, tree: ast.AST):
        self.bound: set[str] = set()
        self.used: set[str] = set()
        self.used_by: dict[str, set[str]] = {}
        self.visit(tree)

    def visit_Name(self, node: ast.Name) -> None:
        (self.used if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """What a comprehension binds, nobody sees outside."""
        parts = [Names(child) for child in ast.iter_child_nodes(node)]
        self.used |= set().union(*(part.used for part in parts)) - set().union(*(part.bound for part in parts))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        self.used |= Names(node.args).used | (Names(node.body).used - arguments)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
        used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        own = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        own |= {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
        self.bound.add(node.name)
        self.used_by[node.name] = used - own


class OnlyVerdicts(ast.NodeTransformer):
    """Takes out assertions, verdicts on other claims, figures and prints: only the verdicts in question may fail."""

    def __init__(self, claims: set[str]):
        self.claims = claims

    def visit_Assert(self, node: ast.Assert) -> ast.Pass:
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        shows = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith(("figures.", "print"))
        return ast.copy_location(ast.Pass(), node) if shows or judges(node) - self.claims else node


def judges(tree: ast.AST) -> set[str]:
    """The claims on which a piece of code calls `verdict`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == "verdict"]
    return {call.args[0].value for call in named if call.args and isinstance(call.args[0], ast.Constant)}


def program(chapter: Chapter, claims: Iterable[str]) -> str:
    """The cells that judge the claims, with every cell above them that binds a name they need, directly or not.

    A cell is kept whole, but for what `OnlyVerdicts` takes out.
    """
    only = OnlyVerdicts(set(claims))
    cells = [only.visit(cell.parse()) for cell in chapter.code]
    functions = {name: used for cell in cells for name, used in Names(cell).used_by.items()}
    needed: set[str] = set()
    kept: list[ast.Module] = []
    for cell in reversed(cells):
        if Names(cell).bound & needed or judges(cell):
            kept.append(cell)
            needed = needs(cell, needed)
            while new := {used for name in needed for used in functions.get(name, ())} - needed:
                needed |= new  # a function looks its names up when it is called, so they may be bound after it
    return "\n\n".join(ast.unparse(cell) for cell in reversed(kept))


def needs(cell: ast.Module, afterwards: set[str]) -> set[str]:
    """The names that must be bound before a cell runs, for its own sake and for what is needed afterwards."""
    for statement in reversed(cell.body):
        names = Names(statement)
        simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr)
        # `x = x + 1` needs an x; what a loop or a `with` both binds and uses, it is taken to bind first.
        afterwards = (afterwards - names.bound) | (names.used if simple else names.used - names.bound)
    return afterwards


def copy_library(target: Path) -> None:
    """Copy mesa_lib into a folder."""
    shutil.copytree(ROOT / "mesa_lib", target / "mesa_lib", ignore=shutil.ignore_patterns("__pycache__"))


def run_program(project: str, source: str, trained: str, keep: bool) -> None:
    """In a fresh process: run a program on the mesa_lib in `project`; `outcome.txt` there says how it ended.

    The folder `trained` holds the results of trainings. With `keep` they are put there, without it they are taken from
    there: what is under test is then the rest of the program.
    """
    os.chdir(project)
    sys.path[:] = [project, *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] == "mesa_lib"]:
        del sys.modules[name]
    outcome = "passed"
    with Path("output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        try:
            import mesa_lib

            mesa_lib.train = remembered(mesa_lib.train, Path(trained), keep)
            exec(compile(source, "chapter", "exec"), {"__name__": "chapter"})
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        library = Path(sys.modules["mesa_lib"].__file__ or "")
        assert library.is_relative_to(Path(project).resolve()), library
    Path("outcome.txt").write_text(outcome, encoding="utf-8")


def remembered(train: Callable[..., object], folder: Path, keep: bool) -> Callable[..., object]:
    """`mesa_lib.train` that keeps its results in a folder, or takes them from there if the same training is kept."""
    import torch

    def trained(learner: torch.nn.Module, *arguments: object, **more: object) -> object:
        file = folder / f"{fingerprint(learner, arguments, more)}.pt"
        if not keep and file.exists():
            return torch.load(file, weights_only=False)
        run = train(learner, *arguments, **more)
        if keep:
            torch.save(run, file)
        return run

    return trained


def fingerprint(learner: object, arguments: tuple[object, ...], more: dict[str, object]) -> str:
    """What a training starts from: its network with all numbers, its tasks, seeds and settings."""
    text = hashlib.sha256(words([learner, *arguments, *more.items()]).encode())
    for tensor in learner.state_dict().values():
        text.update(tensor.detach().numpy().tobytes())
    return text.hexdigest()


def words(value: object) -> str:
    """A text that is the same for equal values in every process: no addresses, and functions by name."""
    name = getattr(value, "__qualname__", type(value).__qualname__)
    if hasattr(value, "named_parameters"):  # a torch module
        plain = {key: one for key, one in vars(value).items() if not key.startswith("_")}
        shapes = [(key, one.dtype, tuple(one.shape)) for key, one in value.state_dict().items()]
        return f"{name} {words([*plain.items(), *value.named_children()])} {shapes}"
    if hasattr(value, "__dataclass_fields__"):
        return f"{name} {words([getattr(value, key) for key in value.__dataclass_fields__])}"
    if isinstance(value, list | tuple | range):
        return f"[{', '.join(map(words, value))}]"
    if isinstance(value, functools.partial):
        return words([value.func, *value.args, *value.keywords.items()])
    if callable(value):
        return f"{name} {words([cell.cell_contents for cell in getattr(value, '__closure__', None) or ()])}"
    return repr(value)
