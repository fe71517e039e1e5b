"""Pictures that answer to a hand, in Jupyter, Colab and Binder, and in the built book without a kernel."""

from mesa_lib.widgets.construction import PropositionByHand
from mesa_lib.widgets.copying import CopyingByHand
from mesa_lib.widgets.kernels import KernelByHand
from mesa_lib.widgets.landscape import LossLandscape
from mesa_lib.widgets.regression import StepOnData
from mesa_lib.widgets.softmax import SoftmaxStep
from mesa_lib.widgets.spectrum import SpectrumFlow
from mesa_lib.widgets.training import TrainingScrubber

__all__ = [
    "CopyingByHand",
    "KernelByHand",
    "LossLandscape",
    "PropositionByHand",
    "SoftmaxStep",
    "SpectrumFlow",
    "StepOnData",
    "TrainingScrubber",
]
