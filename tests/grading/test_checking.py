"""`check` tells a student what is likely wrong, in words, and never the answer."""

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import mesa_lib
from mesa_lib.assignments import (
    LocalStudent,
    MistakeError,
    NotWrittenError,
    check,
    expect_array,
    expect_close,
    expect_number,
    once_written,
)
from mesa_lib.assignments.checking import GRADING
from mesa_lib.assignments.variants import all_variants, choices_of, spanning_variants, variant_of


def right_layer(context, query, w_k, w_q, w_v, w_p):
    memory = w_p @ (w_v @ context) @ (w_k @ context).T @ w_q
    return context + memory @ context, query + memory @ query


def said(capsys, question="q1", **answers):
    check(question, **answers)
    return capsys.readouterr().out


def test_a_right_answer_gets_its_public_points_and_a_warning_of_more(capsys):
    text = said(capsys, layer=right_layer)
    assert "two tokens by hand  ok" in text
    assert "1 of 1 public points. More cases, on random inputs, run when this is graded." in text


@pytest.mark.parametrize("layer", [None, ...])
def test_an_unwritten_answer_is_not_written_yet(capsys, layer):
    def stub(*arguments):
        raise NotImplementedError

    text = said(capsys, layer=layer or stub)
    assert "not written yet" in text
    assert "hint" not in text


def in_place(context, query, w_k, w_q, w_v, w_p):
    moved = right_layer(context, query, w_k, w_q, w_v, w_p)
    context += 1
    return moved


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (lambda c, z, k, q, v, p: right_layer(c, z, q, k, v, p), "keys and queries are exchanged"),
        (
            lambda *a: tuple(new - old for new, old in zip(right_layer(*a), a[:2], strict=True)),
            "the token itself is missing",
        ),
        (lambda *a: tuple(np.nan * new for new in right_layer(*a)), "NaN"),
        (lambda *a: tuple(-new for new in right_layer(*a)), "the sign is the other way round"),
        (lambda *a: tuple(2 * new for new in right_layer(*a)), "off by a constant factor"),
        (lambda *a: (right_layer(*a)[0].T, right_layer(*a)[1]), "exchanged (a transposed product?)"),
        (lambda *a: (right_layer(*a)[0], right_layer(*a)[1].T), "is it transposed?"),
        (lambda *a: (right_layer(*a)[0][:1], right_layer(*a)[1]), "(2, 2) was expected"),
        (lambda *a: None, "is the line with `return` missing?"),
        (in_place, "changed its input in place"),
        (lambda *a: right_layer(*a)[0], "has to return two arrays"),
        (lambda *a: "done", "has to return two arrays"),
        (lambda *a: np.zeros((2, 3)) @ np.zeros((2, 3)), "layer raised ValueError in line"),
        (lambda: 1, "takes 0 positional arguments"),
        (5, "is an int, not a function"),
        (lambda *a: (object(), 1), "type object"),
    ],
)
def test_a_mistake_is_named_and_the_answer_is_not(capsys, layer, words):
    text = said(capsys, layer=layer)
    assert words in text
    assert "hint: follow one context token" in text
    assert "Traceback" not in text and "mesa_lib" not in text
    assert not {"25", "48", "22", "-18"} & set(text.replace("]", " ").replace(".", " ").split())


def test_a_case_that_stumbles_shows_no_traceback(capsys):
    text = said(capsys, "q2", step_weights=lambda *a: (np.eye(4), np.eye(4), np.eye(4), np.zeros((4, 4)) + 1e308))
    assert "Traceback" not in text
    assert "0 of 1 public points" in text


@pytest.mark.parametrize(
    ("question", "answers", "words"),
    [
        ("q77", {"layer": 1}, "no assignment has a question 'q77'"),
        ("q1", {"leyer": 1}, "q1 does not ask for leyer; call check('q1', layer=layer)"),
        ("q3", {"query_token": 1}, "check('q3', query_token=query_token, read_prediction=read_prediction)"),
        ("q1", {"layer": 1, "variant": "none.such"}, "unknown variant 'none.such'"),
    ],
)
def test_a_wrong_call_says_how_to_call(capsys, question, answers, words):
    assert words in said(capsys, question, **answers)


def test_a_variant_is_checked_by_its_own_conventions(capsys):
    def rows(context, query, *weights):
        return tuple(moved.T for moved in right_layer(context.T, query.T, *weights))

    assert "ok" in said(capsys, layer=rows, variant="rows")
    assert "hand  ok" not in said(capsys, layer=rows)


def test_in_the_grader_check_has_nothing_to_do(capsys, monkeypatch):
    monkeypatch.setenv(GRADING, "1")
    assert said(capsys, layer=None) == ""


def test_once_written_waits_for_what_is_missing_and_for_nothing_else(capsys):
    with once_written():
        raise NotImplementedError
    assert capsys.readouterr().out == "not written yet\n"
    with pytest.raises(ZeroDivisionError), once_written():
        _ = 1 / 0


def test_check_needs_no_torch_of_its_own_and_no_posix():
    # The students' side runs on Windows and on a phone's Python: nothing of it may need what is only on Unix. `import
    # mesa_lib` itself imports torch; a stand-in shows that the checks do not.
    program = f"""
import sys, types
for name in ("torch", "scipy", "fcntl", "resource", "pwd", "grp", "termios", "posix"):
    if name != "posix":
        sys.modules[name] = None
package = types.ModuleType("mesa_lib")
package.__path__ = [{str(Path(mesa_lib.__file__).parent)!r}]
sys.modules["mesa_lib"] = package
from mesa_lib.assignments import check
check("q4", power=lambda r, eta: -2.0)
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 public points" in done.stdout


def test_an_answer_that_was_never_given_is_not_written():
    student = LocalStudent({}, {})
    for ask in (lambda: student.call("f"), lambda: student.get("f")):
        with pytest.raises(NotWrittenError):
            ask()


def test_tensors_are_given_on_demand_and_come_back_as_arrays():
    import torch

    kinds = []
    student = LocalStudent({"f": lambda x, y: (kinds.append(type(x)), x * y)[1]}, {})
    for wanted in (True, False):
        result = student.call("f", np.ones(2), [np.ones(2)][0], torch=wanted)
        assert isinstance(result, np.ndarray)
    assert kinds == [torch.Tensor, np.ndarray]


def test_a_function_that_works_in_place_passes_where_nobody_is_strict():
    def change(x):
        x[:] = 0
        return 1.0

    assert LocalStudent({"f": change}, {}, strict=False).call("f", np.ones(1)) == 1.0


@pytest.mark.parametrize("value", [np.zeros(2), "1", None, True, 1j, float("nan"), float("inf"), 10**400, [1.0]])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(MistakeError):
        expect_number(value, "x")


@pytest.mark.parametrize("value", [1, 1.0, np.array(1.0), np.array([1.0]), np.array([[1]])])
def test_a_number_may_come_in_an_array_of_one(value):
    assert expect_number(value, "x") == 1.0


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("a", (1,)),
        (None, (1,)),
        ([[1], [1, 2]], (2, 1)),
        (np.array([1j]), (1,)),
        (np.array([np.nan]), (1,)),
        (np.zeros((2, 3)), (3, 2)),
        (np.zeros(3), (3, 1)),
        ([np.zeros(2), np.zeros(2)], (2,)),
        (np.array([True]), (1,)),
    ],
)
def test_what_is_no_array_of_that_shape_is_refused(value, shape):
    with pytest.raises(MistakeError):
        expect_array(value, shape, "x")


def test_an_axis_may_have_any_size():
    assert expect_array([[1, 2]], (None, 2), "x").shape == (1, 2)
    with pytest.raises(MistakeError, match=r"\(any, 2\) was expected: is it transposed\?"):
        expect_array([[1], [2]], (None, 2), "x")


@pytest.mark.parametrize("wrong", [1e-7, -1e-7])
def test_closeness_is_relative_to_the_largest_entry(wrong):
    expect_close([1000.0, 1e-6], [1000.0, 0.0], "x")
    with pytest.raises(MistakeError, match="only roughly right"):
        expect_close([1.0, wrong], [1.0, 0.0], "x")


@pytest.mark.parametrize(
    ("value", "wanted", "message"),
    [
        (
            np.float32([1 / 3, 2 / 7]),
            [1 / 3, 2 / 7],
            "only roughly right. Was something rounded, or computed in float32",
        ),
        ([2.0, 4.0], [1.0, 2.0], "off by a constant factor"),
        ([0.0, 4.0], [0.0, 1.0], "the shape is right, the numbers are not"),
        ([4.0], [1.0], "not the right number"),
        (4.0, 1.0, "not the right number"),
        (-1.0, 1.0, "the sign is the other way round"),
    ],
)
def test_a_factor_is_named_only_if_the_numbers_show_one(value, wanted, message):
    with pytest.raises(MistakeError, match=message):
        expect_close(value, wanted, "x")


def test_zero_is_close_to_nothing_but_zero():
    expect_close(0.0, 0.0, "x")
    for value in (1e-6, 1.0):
        with pytest.raises(MistakeError):
            expect_close(value, 0.0, "x")


Module = types.ModuleType("public.a99_test")
Module.VARIANTS = {"layout": ("columns", "rows"), "loss": ("mean", "sum")}


def test_a_seed_draws_a_variant_and_the_empty_seed_the_default():
    assert variant_of(Module, "") == ""
    drawn = {variant_of(Module, f"term {number}") for number in range(40)}
    assert drawn == set(all_variants(Module)) == {"", "rows", "sum", "rows.sum"}
    assert spanning_variants(Module) == ["", "rows", "sum", "rows.sum"]
    assert spanning_variants(types.ModuleType("none")) == [""]
    assert variant_of(Module, "term 3") == variant_of(Module, "term 3")


def test_a_variant_is_written_as_its_choices():
    assert choices_of(Module, "rows.sum") == {"layout": "rows", "loss": "sum"}
    assert choices_of(Module, "sum") == {"layout": "columns", "loss": "sum"}
    with pytest.raises(LookupError, match="unknown variant 'diagonal'"):
        choices_of(Module, "diagonal")


def refusal(call):
    """What a call is refused with, or nothing."""
    try:
        call()
    except MistakeError as error:
        return str(error)
    return ""


def test_nan_is_close_to_nothing():
    assert "NaN" in refusal(lambda: expect_close(np.array([np.nan]), np.array([np.nan]), "x"))
    assert "NaN" in refusal(lambda: expect_array(np.array([1.0, np.nan]), (2,), "x"))


def test_a_function_that_works_in_place_is_told():
    def change(x):
        x[:] = 0
        return 1.0

    assert "in place" in refusal(lambda: LocalStudent({"f": change}, {}).call("f", np.ones(1)))
