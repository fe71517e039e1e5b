"""The command line: `python -m mesa_lib list | run NAME | show DIR`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from mesa_lib.experiments.catalogue import EXPERIMENTS, SCALES, Experiment, experiment
from mesa_lib.experiments.files import RunError
from mesa_lib.experiments.plans import DEVICES, Plan, run_all, seeds_up_to
from mesa_lib.experiments.running import SECONDS_BETWEEN_CHECKPOINTS
from mesa_lib.experiments.settings import keys, override
from mesa_lib.experiments.showing import show, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 1 for a run that cannot go on, 2 for what was asked wrongly."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.act(options)
        print(end="", flush=True)  # what cannot be printed is to be known here, and not after the end
    except BrokenPipeError:
        return _unread(options)
    except (RunError, OSError) as error:
        return _refuse(error, 1)
    except (TypeError, ValueError) as error:
        return _refuse(error, 2)
    except KeyboardInterrupt:
        sys.stderr.write("mesa: stopped; the same command goes on from the last checkpoint\n")
        return 130
    return code


def _refuse(error: Exception, code: int) -> int:
    sys.stderr.write(f"mesa: {error}\n")
    _drop_unwritable_output()
    return code


def _unread(options: argparse.Namespace) -> int:
    """Nobody reads on, as behind `| head`: 141, the code of a program that SIGPIPE ends."""
    if options.act is _run:
        sys.stderr.write("mesa: stopped, as nobody reads what is printed; the same command goes on\n")
    _drop_unwritable_output()
    return 141


def _drop_unwritable_output() -> None:
    """Print what is left, or throw it away where that fails: else Python would fail again at its end."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mesa_lib", description="Run the paper's experiments and the book's."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="the experiments; of one, what can be set")
    verb.add_argument("name", nargs="?", help="an experiment")
    verb.add_argument("--scale", default=None, help=f"whose settings are shown: {', '.join(SCALES)}")
    verb.set_defaults(act=_list)

    verb = verbs.add_parser("run", help="train, from the last checkpoints on, and show what came out")
    verb.add_argument("name", help="an experiment, see `list`")
    verb.add_argument("--scale", default=None, help="paper (as the released code has it), book (the default) or smoke")
    verb.add_argument("--seeds", type=_count, default=None, metavar="N", help="the seeds 0 to N - 1")
    verb.add_argument("--out", type=_folder, default=None, metavar="DIR", help="the folder, else results/NAME-SCALE")
    verb.add_argument("--set", nargs="+", default=[], action="extend", metavar="key=value", dest="assignments",
                      help="change settings, see `list NAME`; PART:key=value for one part")  # fmt: skip
    verb.add_argument("--jobs", type=_count, default=1, metavar="N", help="processes on this machine")
    verb.add_argument("--dask", default=None, metavar="tcp://HOST:PORT", help="a Dask scheduler whose workers train")
    verb.add_argument("--device", default="cpu", choices=DEVICES, help="where to train; the data are the same on all")
    verb.add_argument("--checkpoint-seconds", type=float, default=SECONDS_BETWEEN_CHECKPOINTS, metavar="S",
                      help="between two checkpoints of a training, at most 60")  # fmt: skip
    verb.set_defaults(act=_run)

    verb = verbs.add_parser("show", help="a table of a run's numbers beside the paper's, and a figure")
    verb.add_argument("folder", type=Path, help="of a run")
    verb.set_defaults(act=_show)
    return parser


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text!r}")
    return count


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected the path of a folder, got {text!r}")  # as of an unset variable
    return Path(text)


def _list(options: argparse.Namespace) -> int:
    if options.name is None:
        for one in EXPERIMENTS.values():
            print(f"{one.name:14} {one.title}")
        print("\n`python -m mesa_lib list NAME` says what can be set.")
        return 0
    chosen = experiment(options.name)
    scale = chosen.largest if options.scale is None else options.scale
    print(f"{chosen.name}: {chosen.title}\nscale {scale}, {_seeds(chosen, scale)} seeds")
    parts = {part: keys(settings) for part, settings in chosen.parts(scale).items()}
    for key in dict.fromkeys(key for values in parts.values() for key in values):
        values = {part: _shown(found[key]) for part, found in parts.items() if key in found}
        alike = len(set(values.values())) == 1 and len(values) == len(parts)
        text = next(iter(values.values())) if alike else ", ".join(f"{part}: {v}" for part, v in values.items())
        print(f"  {key:26} {text}")
    if chosen.text and "paper" in chosen.scales:
        print("the paper's text instead of its code:")
        print(f"  python -m mesa_lib run {chosen.name} --scale paper --set {' '.join(chosen.text)}")
    for note in chosen.notes:
        print(f"note: {note}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_shown(one) for one in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _seeds(chosen: Experiment, scale: str) -> int:
    chosen.parts(scale)  # refuses a scale that the experiment has not
    return chosen.seeds[scale]


def _run(options: argparse.Namespace) -> int:
    chosen = experiment(options.name)
    scale = chosen.largest if options.scale is None else options.scale
    parts = override(chosen.parts(scale), options.assignments)
    seeds = seeds_up_to(options.seeds or chosen.seeds[scale])
    folder = options.out or Path("results", f"{chosen.name}-{scale}")
    torch.set_num_threads(1)  # as in every worker: the numbers must not depend on where a job runs
    plan = Plan(chosen, scale, parts, seeds, folder, options.device, options.checkpoint_seconds)
    print(f"{chosen.name}: {chosen.title}\n{len(plan.jobs)} trainings, into {folder}", flush=True)
    for number, (job, said) in enumerate(run_all(plan, options.jobs, options.dask), start=1):
        print(f"{number} of {len(plan.jobs)}: {job.name}: {said}", flush=True)
    print(table(folder))
    return 0


def _show(options: argparse.Namespace) -> int:
    print(table(options.folder))
    print(f"figure: {show(options.folder)}")
    return 0
