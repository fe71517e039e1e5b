"""The execution tool: same bytes twice, errors that name the cell, nothing half written."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tqdm import tqdm

from tools import execute
from tools.toc import ROOT

VOLATILE = """\
import os
import anywidget
import ipywidgets

print(object(), os.environ["OMP_NUM_THREADS"], os.environ["PYTHONHASHSEED"], os.environ["TQDM_DISABLE"])
left, right = ipywidgets.IntSlider(), ipywidgets.IntText()
ipywidgets.jslink((left, "value"), (right, "value"))
ipywidgets.HBox([left, right])"""


def write(path: Path, *sources: str) -> Path:
    cells = [new_markdown_cell("# A chapter"), *(new_code_cell(source) for source in sources)]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def silent() -> tqdm:
    return tqdm(disable=True)


def test_executing_twice_changes_no_byte(tmp_path):
    path = write(tmp_path / "volatile.ipynb", VOLATILE)
    assert execute.main([str(path)]) == 0
    first, date = path.read_bytes(), path.stat().st_mtime_ns
    assert execute.main([str(path)]) == 0
    assert path.read_bytes() == first
    assert path.stat().st_mtime_ns == date, "an unchanged file is left alone"
    assert execute.main([str(path), "--check"]) == 0


def test_kernels_have_one_thread_a_fixed_hash_seed_and_no_progress_bars(tmp_path):
    path = write(tmp_path / "volatile.ipynb", VOLATILE)
    (cell,) = (cell for cell in json.loads(execute.execute(path, 60))["cells"] if cell["cell_type"] == "code")
    assert cell["outputs"][0]["text"] == ["<object object at 0xADDRESS> 1 0 1\n"]
    assert cell["execution_count"] == 1
    assert cell["metadata"] == {}


def test_a_failing_cell_is_named_and_its_file_kept_while_the_others_run(tmp_path, capsys):
    bad = write(tmp_path / "bad.ipynb", "x = 1", "\ny = x / 0  # comment\nprint(y)")
    good = write(tmp_path / "good.ipynb", "print('ran')")
    before = bad.read_bytes()
    assert execute.main([str(bad), str(good), "--workers", "1"]) == 1
    message = capsys.readouterr().err
    assert "bad: code cell 2: y = x / 0  # comment" in message
    assert "ZeroDivisionError: division by zero" in message
    assert bad.read_bytes() == before
    assert b"ran" in good.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.ipynb", "good.ipynb"], "no drafts are left behind"


def test_a_slow_cell_is_named(tmp_path):
    path = write(tmp_path / "slow.ipynb", "import time", "time.sleep(60)")
    with pytest.raises(execute.ChapterError, match=r"code cell 2: time.sleep\(60\)\n.*longer than 1 seconds"):
        execute.execute(path, 1)


def test_a_dead_kernel_is_named(tmp_path):
    path = write(tmp_path / "dead.ipynb", "import os", "os.write(2, b'last words'); os._exit(1)")
    with pytest.raises(execute.ChapterError) as failure:
        execute.execute(path, 60)
    place = "code cell 2: os.write(2, b'last words'); os._exit(1)"
    assert str(failure.value) == f"{place}\n  the kernel died (out of memory?)\nlast words"


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about yet does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGTERM, 143, "execute: stopped by SIGTERM"), (signal.SIGKILL, -signal.SIGKILL, "")],
    ids=["SIGTERM", "SIGKILL"],
)
def test_a_tool_that_is_ended_takes_its_worker_and_kernel_with_it(number, code, message, tmp_path):
    source = "import os, time\nwith open('draft', 'w') as file:\n    print(os.getppid(), os.getpid(), file=file)\n"
    path = write(tmp_path / "slow.ipynb", source + "os.rename('draft', 'processes')\ntime.sleep(300)")
    before = path.read_bytes()
    command = [sys.executable, "-m", "tools.execute", str(path)]
    tool = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    processes: list[int] = []
    try:
        wait_until((tmp_path / "processes").exists)
        processes += map(int, (tmp_path / "processes").read_text().split())
        assert all(map(is_running, processes))
        tool.send_signal(number)
        _, errors = tool.communicate(timeout=60)
        assert tool.returncode == code
        assert message in errors
        assert "Traceback" not in errors
        wait_until(lambda: not any(map(is_running, processes)), seconds=20)
    finally:
        for process in filter(is_running, [tool.pid, *processes]):
            os.kill(process, signal.SIGKILL)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["processes", "slow.ipynb"], "no drafts are left behind"


def test_check_says_what_it_does_not_guard(capsys):
    with pytest.raises(SystemExit):
        execute.main(["--help"])
    assert "files that a notebook itself writes are not guarded" in " ".join(capsys.readouterr().out.split())


def test_an_expected_error_keeps_only_its_last_line(tmp_path):
    path = write(tmp_path / "expected.ipynb", "raise ValueError('no')")
    notebook = nbformat.read(path, 4)
    notebook.cells[1].metadata["tags"] = ["raises-exception"]
    nbformat.write(notebook, path)
    outputs = json.loads(execute.execute(path, 60))["cells"][1]["outputs"]
    assert outputs[0]["traceback"] == ["ValueError: no"]


def test_check_fails_and_writes_nothing_if_a_file_would_change(tmp_path, capsys):
    path = write(tmp_path / "stale.ipynb", "print('new')")
    before = path.read_bytes()
    assert execute.main([str(path), "--check"]) == 1
    assert path.read_bytes() == before
    assert "stale: executing it changes the file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "complaint"), [(["--max-seconds", "0.01"], "--max-seconds"), (["--max-memory", "1"], "--max-memory")]
)
def test_limits_are_judged_from_the_outcome(limit, complaint, tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "dear.ipynb", "1")
    outcome = execute.Outcome(path, path.read_bytes(), "", seconds=2.0, megabytes=70.0)
    monkeypatch.setattr(execute, "run", lambda *_: iter([outcome]))
    assert execute.main([str(path), "--max-seconds", "2", "--max-memory", "70"]) == 0
    assert execute.main([str(path), *limit]) == 1
    assert complaint in capsys.readouterr().err


def test_wall_time_and_memory_of_the_kernel_are_measured(tmp_path):
    path = write(tmp_path / "dear.ipynb", "import time; time.sleep(0.5); block = bytearray(300_000_000)")
    (outcome,) = execute.run([path], workers=1, cell_timeout=60, bar=silent())
    assert outcome.error == ""
    assert outcome.seconds > 0.5
    assert 300 < outcome.megabytes < 900


def test_a_worker_that_vanishes_is_a_failure(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    os.close(writer)
    with execute.Connection(reader) as pipe:
        outcome = execute._receive(pipe, tmp_path / "gone.ipynb")
    assert outcome is not None
    assert "ended from outside" in outcome.error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_chapter"], "'no_such_chapter' is no notebook and none of the chapters: one, two"),
        (["missing.ipynb"], "'missing.ipynb' is no notebook"),
    ],
)
def test_unknown_chapters_are_refused_before_work(arguments, message):
    with pytest.raises(execute.UsageError, match=message):
        execute.select(arguments, [Path("/book/one.ipynb"), Path("/book/two.ipynb")])


@pytest.mark.parametrize(
    ("option", "value"), [("--workers", "0"), ("--workers", "1.5"), ("--timeout", "nan"), ("--max-memory", "-1")]
)
def test_numbers_that_make_no_sense_are_refused_by_name(option, value, capsys):
    with pytest.raises(SystemExit) as stop:
        execute.main([option, value])
    assert stop.value.code == 2
    assert f"argument {option}: expected a positive" in capsys.readouterr().err


def test_a_file_that_is_no_notebook_is_refused_before_work(tmp_path, capsys):
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    assert execute.main([str(broken)]) == 2
    assert "holds no notebook" in capsys.readouterr().err


def test_chapters_are_found_by_name_by_path_and_once():
    known = [Path("/book/one.ipynb"), Path(__file__).parent / "two.ipynb"]
    assert execute.select([], known) == known


def test_the_bar_counts_cells_and_names_what_runs(tmp_path):
    path = write(tmp_path / "counted.ipynb", "1", "2", "3")
    lines = io.StringIO()
    with tqdm(total=execute.count_cells(path), file=lines, mininterval=0, disable=False) as bar:
        list(execute.run([path], workers=1, cell_timeout=60, bar=bar))
        assert bar.n == 3
    assert "counted" in lines.getvalue()
