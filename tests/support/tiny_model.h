#ifndef BATON_TESTS_SUPPORT_TINY_MODEL_H_
#define BATON_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstdint>
#include <string>

#include "engine/model_file/model_config.h"

namespace baton {

// Writes a model of a few hundred kilobytes with random weights, the same for the same seed on every machine,
// and a working tokenizer into `directory`; returns its path. Loads in milliseconds. Every tensor type occurs
// in one of the two:
//   llama   4 layers of 64, 4 heads on 2 KV heads of 16, byte-level BPE, a ChatML template, separate head
//   gemma3  7 layers of 96, 3 heads on 1 KV head of 32, window 32, SentencePiece, no template, tied head
std::string WriteTinyModel(Architecture architecture, uint64_t seed, const std::string& directory);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_TINY_MODEL_H_
