"""The part of llama.cpp's C interface that the golden files need, through ctypes.

The layouts are those of release 0.5.0 (`llama_version()` is checked): a parameter struct is taken from the library's own
default function, and only fields whose offset is listed here are changed.
"""

import ctypes
import os

import numpy as np

VERSION = "0.5.0"


class _ModelParams(ctypes.Structure):
    _fields_ = [
        ("head", ctypes.c_byte * 72),
        ("vocab_only", ctypes.c_bool),
        ("rest", ctypes.c_byte * 7),
    ]


class _ContextParams(ctypes.Structure):
    _fields_ = [
        ("n_ctx", ctypes.c_uint32),
        ("n_batch", ctypes.c_uint32),
        ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32),
        ("n_rs_seq", ctypes.c_uint32),
        ("n_outputs_max", ctypes.c_uint32),
        ("n_outputs_max_per_seq", ctypes.c_uint32),
        ("n_threads", ctypes.c_int32),
        ("n_threads_batch", ctypes.c_int32),
        ("middle", ctypes.c_byte * 68),
        ("type_k", ctypes.c_int32),
        ("type_v", ctypes.c_int32),
        ("rest", ctypes.c_byte * 48),
    ]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_quiet = _LOG(lambda level, text, data: None)


class Library:
    """libllama with its CPU back end. `folder` holds the npm package's shared objects."""

    def __init__(self, folder):
        names = os.listdir(folder)
        find = lambda stem: os.path.join(folder, next(n for n in names if n.startswith(stem)))
        self.base = ctypes.CDLL(find("libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
        self.ggml = ctypes.CDLL(find("libggml.v"), mode=ctypes.RTLD_GLOBAL)
        self.c = c = ctypes.CDLL(find("libllama.v"), mode=ctypes.RTLD_GLOBAL)
        c.llama_version.restype = ctypes.c_char_p
        self.version = c.llama_version().decode()
        assert self.version.startswith(VERSION), self.version
        c.llama_model_default_params.restype = _ModelParams
        c.llama_context_default_params.restype = _ContextParams
        for f in ("llama_model_load_from_file", "llama_init_from_model", "llama_model_get_vocab", "llama_get_memory"):
            getattr(c, f).restype = ctypes.c_void_p
        c.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _ModelParams]
        c.llama_init_from_model.argtypes = [ctypes.c_void_p, _ContextParams]
        c.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
        c.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
        c.llama_tokenize.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
            ctypes.c_bool, ctypes.c_bool,
        ]
        c.llama_decode.argtypes = [ctypes.c_void_p, _Batch]
        c.llama_batch_init.argtypes = [ctypes.c_int32] * 3
        c.llama_batch_init.restype = _Batch
        c.llama_batch_free.argtypes = [_Batch]
        c.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        c.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        c.llama_get_memory.argtypes = [ctypes.c_void_p]
        c.llama_memory_clear.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        c.llama_log_set.argtypes = [_LOG, ctypes.c_void_p]
        self.ggml.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
        c.llama_log_set(_quiet, None)
        self.ggml.ggml_backend_load_all_from_path(folder.encode())
        c.llama_backend_init()


class Model:
    def __init__(self, library, path, vocab_only=False):
        self.c = library.c
        params = self.c.llama_model_default_params()
        params.vocab_only = vocab_only
        self.model = self.c.llama_model_load_from_file(path.encode(), params)
        assert self.model, path
        self.vocab = self.c.llama_model_get_vocab(self.model)
        self.vocab_size = self.c.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text, special, add_bos=False):
        data = text.encode()
        size = len(data) + 8
        ids = (ctypes.c_int32 * size)()
        n = self.c.llama_tokenize(self.vocab, data, len(data), ids, size, add_bos, special)
        assert n >= 0, n
        return list(ids[:n])


class Context:
    """One sequence, float16 KV cache and llama.cpp's other defaults."""

    def __init__(self, model, n_ctx, threads):
        self.c, self.n_vocab = model.c, model.vocab_size
        params = self.c.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = n_ctx
        params.n_outputs_max = n_ctx
        params.n_outputs_max_per_seq = n_ctx
        params.n_threads = params.n_threads_batch = threads
        assert params.type_k == params.type_v == 1  # GGML_TYPE_F16
        self.context = self.c.llama_init_from_model(model.model, params)
        assert self.context
        self.used = 0

    def clear(self):
        self.c.llama_memory_clear(self.c.llama_get_memory(self.context), True)
        self.used = 0

    def decode(self, tokens, every=False):
        """Appends `tokens`; the logits after the last one, or after each: [tokens, vocab]."""
        n = len(tokens)
        batch = self.c.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        for i, t in enumerate(tokens):
            batch.token[i] = t
            batch.pos[i] = self.used + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = every or i == n - 1
        assert self.c.llama_decode(self.context, batch) == 0
        self.used += n
        rows = range(n) if every else [n - 1]
        out = np.stack([np.ctypeslib.as_array(self.c.llama_get_logits_ith(self.context, i), (self.n_vocab,)) for i in rows])
        self.c.llama_batch_free(batch)
        return out.copy() if every else out[0].copy()
