"""A float32 run of the models' GGUF files: every tensor dequantized by the gguf package, every product in float32.

Written from the models' definitions alone, it shares no code with Baton, llama.cpp or transformers; `make_logits.py`
checks it against transformers.
"""

import os

import gguf
import numpy as np
import torch

FILES = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma3": "gemma-3-270m.Q4_K_M.gguf"}


def norm(x, weight, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight


def rotation(positions, dim, base):
    angles = positions[:, None].double() * base ** (-torch.arange(0, dim, 2).double() / dim)
    return angles.cos().float(), angles.sin().float()  # [tokens, dim / 2]


def rotate(x, cos, sin, interleaved):
    """x: [heads, tokens, dim]"""
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    first, second = a * cos - b * sin, a * sin + b * cos
    return torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat((first, second), -1)


class FloatModel:
    def __init__(self, models, name, threads):
        torch.set_num_threads(threads)
        reader = gguf.GGUFReader(os.path.join(models, FILES[name]))
        self.gemma = name == "gemma3"
        key = lambda k: reader.fields[("gemma3." if self.gemma else "llama.") + k].contents()
        self.layers, self.heads, self.kv_heads = key("block_count"), key("attention.head_count"), key("attention.head_count_kv")
        self.epsilon, self.base = key("attention.layer_norm_rms_epsilon"), key("rope.freq_base")
        self.width = key("embedding_length")
        self.dim = key("attention.key_length") if self.gemma else key("rope.dimension_count")
        self.window = key("attention.sliding_window") if self.gemma else None
        self.weights = {}
        for t in reader.tensors:
            values = gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
            self.weights[t.name] = torch.from_numpy(values.reshape(tuple(reversed(t.shape.tolist()))))

    def attention(self, x, layer, positions):
        w = lambda n: self.weights[f"blk.{layer}.{n}.weight"]
        tokens = x.shape[0]
        split = lambda y, heads: y.view(tokens, heads, self.dim).transpose(0, 1)
        q, k, v = split(x @ w("attn_q").T, self.heads), split(x @ w("attn_k").T, self.kv_heads), split(x @ w("attn_v").T, self.kv_heads)
        full = not self.gemma or layer % 6 == 5
        if self.gemma:
            q, k = norm(q, w("attn_q_norm"), self.epsilon), norm(k, w("attn_k_norm"), self.epsilon)
        cos, sin = rotation(positions, self.dim, self.base if full else 10000.0)
        q, k = rotate(q, cos, sin, not self.gemma), rotate(k, cos, sin, not self.gemma)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 0) for y in (k, v))
        distance = positions[:, None] - positions[None, :]
        hidden = distance < 0 if full else (distance < 0) | (distance >= self.window)
        scores = (q @ k.transpose(1, 2)) * self.dim ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return (weights @ v).transpose(0, 1).reshape(tokens, -1) @ w("attn_output").T

    def mlp(self, x, layer):
        w = lambda n: self.weights[f"blk.{layer}.{n}.weight"]
        gate = x @ w("ffn_gate").T
        gate = torch.nn.functional.gelu(gate, approximate="tanh") if self.gemma else torch.nn.functional.silu(gate)
        return (gate * (x @ w("ffn_up").T)) @ w("ffn_down").T

    @torch.inference_mode()
    def logits(self, tokens, rows):
        """The logits after the tokens at `rows`: float32 [rows, vocab]."""
        w, eps = self.weights, self.epsilon
        x = w["token_embd.weight"][torch.tensor(tokens)]
        if self.gemma:
            x = x * self.width ** 0.5
        positions = torch.arange(len(tokens))
        for i in range(self.layers):
            part = self.attention(norm(x, w[f"blk.{i}.attn_norm.weight"], eps), i, positions)
            x = x + (norm(part, w[f"blk.{i}.post_attention_norm.weight"], eps) if self.gemma else part)
            part = self.mlp(norm(x, w[f"blk.{i}.ffn_norm.weight"], eps), i)
            x = x + (norm(part, w[f"blk.{i}.post_ffw_norm.weight"], eps) if self.gemma else part)
        x = norm(x[list(rows)], w["output_norm.weight"], eps)
        return (x @ w["token_embd.weight"].T).numpy()
