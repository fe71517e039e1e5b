"""Submissions that went wrong or try to cheat, each with the points that a fair person would give."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Cells = Sequence[tuple[str, str]]


class Attack(NamedTuple):
    """A submission: what it does to the cells of the solution, its points in questions 1 and 2, and whether it hangs."""

    name: str
    change: Callable[[Cells], Cells]
    q1: int
    q2: int
    hangs: bool = False


def without(cells: Cells, text: str) -> Cells:
    """The cells that do not hold a text."""
    return [cell for cell in cells if text not in cell[1]]


def replaced(old: str, new: str) -> Callable[[Cells], Cells]:
    """A text replaced wherever it occurs."""
    return lambda cells: [(kind, source.replace(old, new)) for kind, source in cells]


def answer_1(body: str, before: str = "") -> Callable[[Cells], Cells]:
    """Another body for the function of question 1, and code before it."""
    function = f"{before}\ndef lsa_step(tokens, w_k, w_q, w_v, w_p):\n" + "".join(
        f"    {line}\n" for line in body.splitlines()
    )
    return lambda cells: [(kind, function if "def lsa_step" in source else source) for kind, source in cells]


def cheat(code: str) -> Callable[[Cells], Cells]:
    """Code in the first cell, and answers that are wrong."""
    wrong = "\nimport numpy as np\ndef lsa_step(*arguments):\n    return WRONG\ndef best_eta(*arguments):\n    return WRONG\n"
    return lambda cells: [("code", "WRONG = 3.0\n" + wrong + code)]


def added(source: str, kind: str = "code") -> Callable[[Cells], Cells]:
    """A cell more at the end."""
    return lambda cells: [*cells, (kind, source)]


def copied_stub(cells: Cells) -> Cells:
    """Below the answer there is a copy of the cell as it was handed out."""
    return [*cells, ("code", "def lsa_step(tokens, w_k, w_q, w_v, w_p):\n    raise NotImplementedError")]


RIGHT = "return tokens + w_p @ (w_v @ tokens) @ (w_k @ tokens).T @ (w_q @ tokens)"

ACCIDENTS = [
    Attack("perfect", lambda cells: cells, 4, 4),
    Attack("nothing written", answer_1("raise NotImplementedError"), 0, 4),
    Attack("keys and queries exchanged", replaced("(w_k @ tokens).T @ (w_q @ tokens)", "(w_q @ tokens).T @ (w_k @ tokens)"), 1, 4),
    Attack("off by N", replaced("gradient @ (x.T @ (x @ gradient)) / len(y)", "gradient @ (x.T @ (x @ gradient))"), 4, 1),
    Attack("a syntax error", answer_1("return tokens +"), 0, 4),
    Attack("an error in a cell", answer_1(RIGHT, before="undefined_name\n"), 0, 4),
    Attack("an error in the function", answer_1("return tokens @ np.zeros((99, 99))"), 0, 4),
    Attack("an endless loop in the function", answer_1("while True: pass"), 0, 4, True),
    Attack("an endless loop in a cell", added("while True: pass"), 4, 4, True),
    Attack("a loop that swallows every exception", answer_1("while True:\n    try:\n        while True: sum(range(1000))\n    except BaseException: pass"), 0, 4, True),
    Attack("a cell that swallows every exception", added("while True:\n    try:\n        while True: sum(range(1000))\n    except BaseException: pass"), 4, 4, True),
    Attack("os._exit in the function", answer_1("import os; os._exit(0)"), 0, 4),
    Attack("os._exit in a cell", added("import os; os._exit(0)"), 4, 4),
    Attack("sys.exit in the function", answer_1("import sys; sys.exit()"), 0, 4),
    Attack("sys.exit in a cell", added("import sys; sys.exit()"), 4, 4),
    Attack("an array of eight terabytes", answer_1("return np.zeros(10**12)"), 0, 4),
    Attack("fifty megabytes of print", answer_1(f"print('x' * 50_000_000)\n{RIGHT}"), 4, 4),
    Attack("waits for input", answer_1(f"input()\n{RIGHT}"), 0, 4),
    Attack("endless recursion", answer_1("return lsa_step(tokens, w_k, w_q, w_v, w_p)"), 0, 4),
    Attack("a list for an array", answer_1(f"{RIGHT.replace('return', 'moved =')}\nreturn moved.tolist()"), 4, 4),
    Attack("changes its input in place", answer_1("tokens += w_p @ (w_v @ tokens) @ (w_k @ tokens).T @ (w_q @ tokens)\nreturn tokens"), 3, 4),
    Attack("a cell copied", lambda cells: [*cells, *cells], 4, 4),
    Attack("the empty cell copied below the answer", copied_stub, 4, 4),
    Attack("a check deleted", lambda cells: without(cells, "check("), 4, 4),
    Attack("the imports deleted", lambda cells: without(cells, "import numpy"), 4, 4),
    Attack("an answer deleted", lambda cells: without(cells, "def lsa_step"), 0, 4),
    Attack("all text deleted", lambda cells: [cell for cell in cells if cell[0] == "code"], 4, 4),
    Attack("a function that uses what an experiment defines", answer_1(f"assert example > 0\n{RIGHT}"), 4, 4),
    Attack("a cell that uses what an experiment defines", added("def lsa_step(tokens, w_k, w_q, w_v, w_p, known=example):\n    "
        + RIGHT), 4, 4),
    Attack("a name that nobody defines", answer_1(f"assert nothing > 0\n{RIGHT}"), 0, 4),
    Attack("magics", lambda cells: [("code", "%matplotlib inline\n!ls\n%%time\n"), ("code", "%%time\nimport numpy as np\n"), *cells], 4, 4),
    Attack("the name used for a number later", added("lsa_step = 7"), 0, 4),
]  # fmt: skip

ATTACKS = [
    Attack("comparisons patched", cheat("np.allclose = np.array_equal = lambda *a, **k: True\nnp.testing.assert_allclose = lambda *a, **k: None"), 0, 0),
    Attack("asserts removed from the syntax tree", cheat(
        "import ast\nclass Remove(ast.NodeTransformer):\n    def visit_Assert(self, node): return None\n"
        "get_ipython().ast_transformers.append(Remove())"), 0, 0),
    Attack("the reference read from the globals and the frames", answer_1(
        "import sys, gc\nframe = sys._getframe()\nwhile frame:\n"
        "    for name, value in {**frame.f_globals, **frame.f_locals}.items():\n"
        "        if callable(value) and ('by_hand' in name or 'ref' in name): return value(tokens, w_k, w_q, w_v, w_p)\n"
        "    frame = frame.f_back\n"
        "for thing in gc.get_objects():\n"
        "    if getattr(thing, '__name__', '') == 'by_hand': return thing(tokens, w_k, w_q, w_v, w_p)\n"
        "raise ValueError('nothing to read')"), 0, 4),
    Attack("the shell patched", cheat("get_ipython().transform_cell = lambda cell: 'pass'\nget_ipython().run_cell = None"), 0, 0),
    Attack("a test result patched", cheat("import types, sys\nsys.modules['otter'] = types.ModuleType('otter')\nimport unittest\nunittest.TestCase.assertTrue = None"), 0, 0),
    Attack("the values' room patched", cheat(
        "import mesa_lib.assignments.values as v, mesa_lib.assignments.cases as c, mesa_lib.assignments as a\n"
        "v.same = lambda *x: True\nc.MistakeError = None\na.expect_close = lambda *x: None\nc.error_in = lambda *x: 'passed'"), 0, 0),
    Attack("equal to everything", cheat(
        "class Equal(np.ndarray):\n    def __eq__(self, other): return True\n    __le__ = __lt__ = __gt__ = __ge__ = __eq__\n"
        "WRONG = np.zeros((2, 2)).view(Equal)"), 0, 0),
    Attack("an object with code in its pickle", cheat(
        "class Bad:\n    def __reduce__(self): return (print, ('hacked',))\nWRONG = np.array([Bad()], dtype=object)"), 0, 0),
    Attack("its source printed", cheat("raise RuntimeError(repr(In) if 'In' in globals() else repr(globals()))"), 0, 0),
    Attack("a structure without an end", cheat("WRONG = []\nWRONG.append(WRONG)"), 0, 0),
    Attack("an answer of a gigabyte", cheat("def lsa_step(*a): return np.zeros(2**27)"), 0, 0),
    Attack("a forged answer", cheat(
        "import os, struct, json\nbody = json.dumps({'status': 'ok', 'points': 99}).encode()\n"
        "for fd in range(3, 30):\n"
        "    try: os.write(fd, struct.pack('<III', len(body), 2, 0) + body + b'{}')\n"
        "    except OSError: pass"), 0, 0, True),
    Attack("a forged answer of endless length", cheat(
        "import os, struct\n"
        "for fd in range(3, 30):\n"
        "    try: os.write(fd, struct.pack('<III', 2**32 - 1, 2**32 - 1, 2**32 - 1))\n"
        "    except OSError: pass"), 0, 0, True),
    Attack("the clock taken away", cheat(
        "import signal, time\n"
        "def lsa_step(*a):\n    signal.setitimer(signal.ITIMER_REAL, 0); signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    time.sleep(99)"), 0, 0, True),
    Attack("a blocked room used", cheat(
        "import mesa_lib\nfrom mesa_lib.networks.constructions import gd_construction\n"
        "def lsa_step(*a): return mesa_lib.gd_construction(1.0, 2, 1, 3).w_k.numpy()[0]"), 0, 0),
    Attack("children left behind", cheat(
        "import os\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execvp('sleep', ['sleep', '600.125'])\n    os._exit(0)"), 0, 0),
    Attack("a bomb of processes", cheat(
        "import os, time\n"
        "for _ in range(300):\n    try:\n        if os.fork() == 0: time.sleep(600); os._exit(0)\n    except OSError: break"), 0, 0),
    Attack("the parent killed", cheat("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(1, signal.SIGKILL)"), 0, 0),
]  # fmt: skip
