"""Makes dequantize.bin; README.md says how and what it holds."""

import argparse
import ctypes
import os
import struct

import gguf
import numpy as np

import llama_c

BLOCKS = 6


def blocks(rng, kind):
    """Random bytes for BLOCKS blocks of one type, with float16 scales that are finite and of every size."""
    per_block, size = gguf.GGML_QUANT_SIZES[kind]
    if kind == gguf.GGMLQuantizationType.F16:
        values = np.concatenate([rng.normal(0, 10.0 ** rng.integers(-7, 4), 58), [0.0, -0.0, 65504, -65504, 6e-8, -6e-5]])
        return 1, values.astype("<f2").tobytes()
    if kind == gguf.GGMLQuantizationType.BF16:
        values = (rng.normal(0, 1, 64) * 10.0 ** rng.integers(-38, 38, 64)).astype("<f4").view("<u4") >> 16
        return 1, values.astype("<u2").tobytes()
    scale_offsets = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
                     "Q6_K": [208]}[kind.name]
    data = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for i in range(BLOCKS):
        for at in scale_offsets:
            # One block has the smallest subnormal for a scale, the others ordinary values of either sign.
            scale = np.float16(6e-8) if i == 0 else np.float16(rng.normal() * 10.0 ** rng.integers(-4, 2))
            data[i, at:at + 2] = np.frombuffer(scale.tobytes(), np.uint8)
    return per_block, data.tobytes()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--llama", required=True, help="folder of libllama's shared objects")
    args = args.parse_args()
    base = llama_c.Library(args.llama).base
    rng = np.random.default_rng(3)
    names = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "dequantize.bin"), "wb") as out:
        out.write(struct.pack("<4sI", b"BGDQ", len(names)))
        for name in names:
            kind = gguf.GGMLQuantizationType[name]
            per_block, data = blocks(rng, kind)
            count = len(data) // gguf.GGML_QUANT_SIZES[kind][1] * per_block
            values = np.empty(count, "<f4")
            row = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}.get(name, "dequantize_row_" + name.replace("Q", "q"))
            getattr(base, row)(data, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(count))
            other = gguf.dequantize(np.frombuffer(data, np.uint8), kind).astype("<f4")
            assert np.isfinite(values).all()
            worst = np.max(np.abs(values - other) / np.maximum(np.abs(values), 1e-30))
            print(name, count, "values, greatest relative difference to the gguf package:", worst)
            out.write(struct.pack("<III", int(kind), count, len(data)) + data + values.tobytes())


if __name__ == "__main__":
    main()
