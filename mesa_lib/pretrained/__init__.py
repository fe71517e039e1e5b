"""Pretrained models: weights from packages of the Python registry, and as much of a decoder as watching it takes.

Nothing here downloads. Where the weights are not installed, `WeightsNotInstalledError` says how to install them.
"""

from mesa_lib.pretrained.decoder import (
    AttentionSplit,
    Decoder,
    DecoderBlock,
    HeadReading,
    rotate_pairs,
    split_attention,
)
from mesa_lib.pretrained.files import WeightsNotInstalledError
from mesa_lib.pretrained.models import minilm_attention, smollm2
from mesa_lib.pretrained.tokenizer import BytePairTokenizer

__all__ = [
    "AttentionSplit",
    "BytePairTokenizer",
    "Decoder",
    "DecoderBlock",
    "HeadReading",
    "WeightsNotInstalledError",
    "minilm_attention",
    "rotate_pairs",
    "smollm2",
    "split_attention",
]
