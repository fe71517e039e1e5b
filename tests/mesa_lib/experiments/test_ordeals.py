"""Trainings that are killed, starved, watched by two, or sent elsewhere end with the numbers of an undisturbed one.

All of it happens in one program, ordeals.py, which runs once; each test judges a part of what it says.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    program = Path(__file__).with_name("ordeals.py")
    folder = tmp_path_factory.mktemp("ordeals")
    environment = os.environ | {"JAXTYPING_DISABLE": "1"}
    run = subprocess.run(
        [sys.executable, program, folder], capture_output=True, text=True, timeout=900, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return report


def test_a_training_killed_at_twenty_random_moments_ends_with_the_same_bits(happened):
    moments = happened["moments"]
    assert moments["killed"] == 20
    assert moments["with a checkpoint"] >= 5, "hardly a kill fell into the training itself"
    assert moments["wrong"] == 0


@pytest.mark.parametrize("count", [1, 30, 61, 62])
@pytest.mark.parametrize("place", ["rename", "half"])
def test_a_kill_between_write_and_rename_or_within_the_bytes_harms_nothing(happened, place, count):
    died, left_behind, code, left_at_the_end, alike = happened["traps"][f"{place} {count}"]
    assert died and left_behind == 1, "the trap did not spring between write and rename"
    assert code == 0 and left_at_the_end == 0 and alike


def test_no_room_is_refused_in_words_and_the_last_checkpoint_stays(happened):
    starved = happened["starved"]
    assert starved["first"] == -9  # so that there is a checkpoint to lose
    limited, full = starved["words"]
    assert "seed-0.checkpoint: cannot be written, files may not grow as large here" in limited
    assert "seed-0.checkpoint: cannot be written, the disk is full" in full
    assert starved["codes"] == [3, 3, 0]
    assert starved["untouched"] and starved["alike"]


def test_a_folder_that_may_not_be_written_is_refused_before_any_work(happened):
    forbidden = happened["forbidden"]
    assert forbidden["code"] == 3 and forbidden["left"] == []
    assert "/run: cannot be written, this user may not write there" in forbidden["words"]


def test_of_two_processes_with_one_training_the_second_waits_and_finds_it_done(happened):
    assert happened["two at once"] == {"codes": [0, 0], "said": ["trained", "was finished"], "alike": True}


def test_two_processes_give_the_numbers_of_one(happened):
    ended = happened["two processes"]["ended"]
    assert ended == [[seed, "trained"] for seed in range(4)]
    assert happened["two processes"]["alike"]


def test_a_lost_process_ends_the_run_in_words_and_the_same_command_loses_nothing(happened):
    lost = happened["a lost process"]
    assert lost["killed"] == 1 and lost["alive"] == 0
    finished = lost["finished"]
    assert f"a worker died (TerminatedWorkerError): {finished} of 4 trainings are finished, the others" in lost["words"]
    assert lost["words"].endswith("have their checkpoints. Repeat the same command to go on")
    # What was finished is not touched, what was begun goes on where it stopped, and nothing is trained twice.
    taken_up = sum(said.startswith("went on from step") for said in lost["again"])
    assert lost["again"].count("was finished") == finished and len(lost["again"]) == 4
    assert taken_up >= 1 and lost["sessions"] == 4 + taken_up
    assert lost["alike"] and lost["left"] == []


def test_a_cluster_that_loses_a_worker_loses_nothing_and_does_nothing_twice(happened):
    cluster = happened["cluster"]
    assert cluster["killed"] == 1
    assert [seed for seed, _ in cluster["ended"]] == [0, 1, 2, 3]
    # Exactly one training was taken up again, where the dead worker had left it, and none was trained twice.
    assert cluster["sessions"] == 5
    assert sum(said.startswith("went on from step") for _, said in cluster["ended"]) == 1
    assert sum(said == "trained" for _, said in cluster["ended"]) == 3
    assert cluster["alike"] and cluster["left"] == []
