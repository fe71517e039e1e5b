"""Many jobs: one after the other, in processes of this machine, or on a Dask cluster, with the same numbers."""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import torch

from mesa_lib.experiments.files import RunError
from mesa_lib.experiments.running import Job, run_job

SECONDS_TO_CONNECT = 3.0
SECONDS_TO_ANSWER = 10.0
_INSTALL = "it comes with `pip install 'mesa-lib[experiments]'`"


def check_backend(workers: int = 1, scheduler: str | None = None) -> None:
    """Refuse, before anything is written, packages that are missing and a scheduler that is not there.

    Raises:
        RunError: joblib or Dask is missing, or nobody listens at the scheduler's address.
    """
    if workers > 1 or scheduler is not None:
        _imported("joblib")
    if scheduler is not None:
        _imported("distributed")
        _knock(scheduler)


def each_of(jobs: Sequence[Job], workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Job, str]]:
    """Run jobs, and say of each what `run_job` says as soon as it has ended.

    A job's numbers depend on the job alone: every job runs on one thread, wherever it runs. On a cluster a job whose
    worker dies is given to another worker, and goes on from the last checkpoint.

    Args:
        jobs: what to run.
        workers: processes on this machine; one is this process itself.
        scheduler: the address of a Dask scheduler; its workers then do the work.

    Yields:
        (job, what happened), in the order in which they end.

    Raises:
        RunError: a job's, or a process died, or joblib or Dask is missing, or no scheduler answers.
    """
    if workers == 1 and scheduler is None:
        for job in jobs:
            yield job, run_job(job)
        return
    joblib = _imported("joblib")
    with ExitStack() as stack:
        if scheduler is not None:
            client = stack.enter_context(_client(scheduler))
            stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        else:
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=min(workers, len(jobs))))
        parallel = joblib.Parallel(batch_size=1, return_as="generator_unordered", pre_dispatch="all")
        try:
            yield from parallel(joblib.delayed(run_in_worker)(job) for job in jobs)
        except RunError:
            raise
        except Exception as error:
            # What joblib and Dask raise when a process dies has no common class.
            if "Terminated" in type(error).__name__ or "Killed" in type(error).__name__:
                done = sum(job.is_finished for job in jobs)
                raise RunError(
                    f"a worker died ({type(error).__name__}): {done} of {len(jobs)} trainings are finished, the others "
                    "have their checkpoints. Repeat the same command to go on"
                ) from error
            raise


def run_in_worker(job: Job) -> tuple[Job, str]:
    """`run_job` in a process of its own: on one thread, and without a progress bar, of which there would be many."""
    os.environ["TQDM_DISABLE"] = "1"
    torch.set_num_threads(1)
    return job, run_job(job)


def _imported(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        option = "--jobs" if name == "joblib" else "--dask"
        raise RunError(f"{option}: needs the package {name}; {_INSTALL}") from error


def _knock(address: str) -> None:
    """Refuse an address at which nobody listens, at once: Dask would ask again and again until its time is up."""
    scheme, _, place = address.rpartition("://")
    if scheme not in ("", "tcp", "tls"):
        return  # Dask knows others
    try:
        parts = urlsplit(f"//{place}")
        if not parts.hostname or not parts.port:
            raise ValueError("expected a host and a port, as in tcp://HOST:8786")
        socket.create_connection((parts.hostname, parts.port), timeout=SECONDS_TO_CONNECT).close()
    except (OSError, ValueError) as error:
        raise _no_scheduler(address, error) from error


def _client(address: str) -> Any:
    """A client of the scheduler at an address, which may be no scheduler.

    Dask waits for ever for the greeting of a program that accepts connections and says nothing, so it may wait in a
    thread that nobody waits for.
    """
    distributed = _imported("distributed")
    answers: list[Any] = []

    def connect() -> None:
        try:
            answers.append(distributed.Client(address, set_as_default=False, timeout=SECONDS_TO_ANSWER))
        except Exception as error:  # whatever it is, it means that there is no client
            answers.append(error)

    asking = threading.Thread(target=connect, daemon=True)
    asking.start()
    asking.join(1.2 * SECONDS_TO_ANSWER)
    answer = answers[0] if answers else TimeoutError("somebody listens there, and does not answer")
    if isinstance(answer, Exception):
        raise _no_scheduler(address, answer) from answer
    return answer


def _no_scheduler(address: str, error: Exception) -> RunError:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return RunError(f"--dask: expected the address of a scheduler that answers, got {address!r} ({said})")
