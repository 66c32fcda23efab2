// llama.cpp behind the commands of //engine:engine_bench, so that one driver can alternate between the two
// engines.
//
//   llama_cpp_engine MODEL THREADS CONTEXT_TOKENS
//
// Answers `prefill`, `decode`, `logits` and `rss` as engine/engine_bench.cc documents them. llama.cpp runs
// with its own defaults: weights repacked for the processor where it can, float16 KV cache, flash attention
// as it chooses, batches of 2,048 tokens in parts of 512. Built by tools/lib/llama_cpp.sh against the sources
// that it fetches.
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ggml-cpu.h"
#include "llama.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDecodeRoom = 128;    // tokens that a sequence may append after its depth
constexpr int kPartTokens = 512;    // llama.cpp's default n_ubatch
constexpr int kBatchTokens = 2048;  // llama.cpp's default n_batch

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, FreeModel>;
using Context = std::unique_ptr<llama_context, FreeContext>;

// An answer's fields after "command", or what went wrong.
struct Answer {
  std::string fields;
  std::string error;
};

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

Answer Timed(int64_t tokens, double seconds) {
  char text[160];
  std::snprintf(text, sizeof(text), "\"tokens\":%" PRId64 ",\"seconds\":%.9f,\"tokens_per_second\":%.3f",
                tokens, seconds, static_cast<double>(tokens) / seconds);
  return {text, ""};
}

// A line of /proc/self/status in bytes; 0 where there is none.
uint64_t MemoryOf(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0)
      return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

// Tokens for one llama_decode.
class Batch {
 public:
  explicit Batch(int capacity) : batch_(llama_batch_init(capacity, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Clear() { batch_.n_tokens = 0; }
  void Add(llama_token token, int position, int sequence, bool logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = token;
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = logits ? 1 : 0;
  }
  int size() const { return batch_.n_tokens; }
  llama_batch get() const { return batch_; }

 private:
  llama_batch batch_;
};

class Engine {
 public:
  Engine(Model model, int threads, int context_tokens)
      : model_(std::move(model)),
        threads_(threads),
        context_tokens_(context_tokens),
        vocab_size_(llama_vocab_n_tokens(llama_model_get_vocab(model_.get()))),
        single_(NewContext(context_tokens, 1)) {}

  bool ok() const { return single_ != nullptr; }
  int vocab_size() const { return vocab_size_; }

  Answer Prefill(int tokens) {
    if (tokens < 1 || tokens > context_tokens_) return {"", "tokens is out of range"};
    Forget(single_.get());
    const Clock::time_point start = Clock::now();
    if (!Append(single_.get(), 0, Tokens(tokens, 1), /*last_logits=*/true))
      return {"", "llama_decode failed"};
    return Timed(tokens, Seconds(start));
  }

  Answer Decode(int depth, int streams, int steps) {
    if (depth < 1 || streams < 1 || steps < 1 || steps > kDecodeRoom ||
        depth + kDecodeRoom > context_tokens_) {
      return {"", "depth, streams or steps is out of range"};
    }
    llama_context* const context = PreparedContext(depth, streams);
    if (context == nullptr) return {"", "the sequences could not be prepared"};
    Batch batch(streams);
    const Clock::time_point start = Clock::now();
    for (int step = 0; step < steps; ++step) {
      const std::vector<llama_token> tokens = Tokens(streams, step);
      batch.Clear();
      for (int i = 0; i < streams; ++i) batch.Add(tokens[i], depth + step, i, true);
      if (llama_decode(context, batch.get()) != 0) return {"", "llama_decode failed"};
      if (llama_get_logits_ith(context, streams - 1) == nullptr) return {"", "there are no logits"};
    }
    return Timed(int64_t{streams} * steps, Seconds(start));
  }

  Answer Logits(const std::string& from, const std::string& to) {
    std::ifstream in(from);
    const std::vector<llama_token> tokens{std::istream_iterator<llama_token>(in),
                                          std::istream_iterator<llama_token>()};
    if (tokens.empty() || static_cast<int>(tokens.size()) > context_tokens_)
      return {"", from + " is no such file"};
    std::ofstream out(to, std::ios::binary);
    Forget(single_.get());
    Batch batch(kPartTokens);
    for (size_t begin = 0; begin < tokens.size(); begin += kPartTokens) {
      batch.Clear();
      for (size_t i = begin; i < tokens.size() && i < begin + kPartTokens; ++i) {
        batch.Add(tokens[i], static_cast<int>(i), 0, true);
      }
      if (llama_decode(single_.get(), batch.get()) != 0) return {"", "llama_decode failed"};
      for (int row = 0; row < batch.size(); ++row) {
        out.write(reinterpret_cast<const char*>(llama_get_logits_ith(single_.get(), row)),
                  static_cast<std::streamsize>(vocab_size_ * sizeof(float)));
      }
    }
    out.close();
    if (!out) return {"", to + " cannot be written"};
    return {"\"tokens\":" + std::to_string(tokens.size()), ""};
  }

 private:
  Context NewContext(int tokens, int sequences) const {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(tokens) * static_cast<uint32_t>(sequences);
    params.n_batch = kBatchTokens;
    params.n_ubatch = kPartTokens;
    params.n_seq_max = static_cast<uint32_t>(sequences);
    params.n_threads = params.n_threads_batch = threads_;
    return Context(llama_init_from_model(model_.get(), params));
  }

  // The random prompts of engine_bench.
  std::vector<llama_token> Tokens(int count, uint64_t seed) const {
    std::vector<llama_token> tokens(count);
    uint64_t state = seed;
    for (llama_token& token : tokens) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      token = static_cast<llama_token>((state >> 33) % static_cast<uint64_t>(vocab_size_));
    }
    return tokens;
  }

  static void Forget(llama_context* context) { llama_memory_clear(llama_get_memory(context), true); }

  static bool Append(llama_context* context, int sequence, const std::vector<llama_token>& tokens,
                     bool last_logits) {
    Batch batch(kBatchTokens);
    for (size_t begin = 0; begin < tokens.size(); begin += kBatchTokens) {
      batch.Clear();
      for (size_t i = begin; i < tokens.size() && i < begin + kBatchTokens; ++i) {
        batch.Add(tokens[i], static_cast<int>(i), sequence, last_logits && i + 1 == tokens.size());
      }
      if (llama_decode(context, batch.get()) != 0) return false;
    }
    if (last_logits) return llama_get_logits_ith(context, -1) != nullptr;
    llama_synchronize(context);
    return true;
  }

  // With `streams` sequences of `depth` tokens; computed the first time, afterwards cut back to that.
  llama_context* PreparedContext(int depth, int streams) {
    Context& context = prepared_[{depth, streams}];
    bool ready = context != nullptr;
    if (!ready) context = NewContext(depth + kDecodeRoom, streams);
    if (context == nullptr) return nullptr;
    for (int i = 0; i < streams && ready; ++i) {
      ready = llama_memory_seq_rm(llama_get_memory(context.get()), i, depth, -1);
    }
    if (ready) return context.get();
    Forget(context.get());
    for (int i = 0; i < streams; ++i) {
      if (!Append(context.get(), i, Tokens(depth, i), /*last_logits=*/false)) return nullptr;
    }
    return context.get();
  }

  const Model model_;
  const int threads_;
  const int context_tokens_;
  const int vocab_size_;
  const Context single_;
  std::map<std::pair<int, int>, Context> prepared_;  // by depth and streams
};

Answer Run(Engine& engine, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "prefill") {
    int tokens = 0;
    words >> tokens;
    return engine.Prefill(tokens);
  }
  if (verb == "decode") {
    int depth = 0, streams = 0, steps = 0;
    words >> depth >> streams;
    return engine.Decode(depth, streams, words >> steps ? steps : 32);
  }
  if (verb == "logits") {
    std::string from, to;
    words >> from >> to;
    return engine.Logits(from, to);
  }
  if (verb == "rss") {
    return {"\"rss_bytes\":" + std::to_string(MemoryOf("VmRSS")) +
                ",\"peak_rss_bytes\":" + std::to_string(MemoryOf("VmHWM")),
            ""};
  }
  return {"", "no such command"};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llama_cpp_engine MODEL THREADS CONTEXT_TOKENS\n");
    return 2;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const int threads = std::atoi(argv[2]);
  const Clock::time_point start = Clock::now();
  Model model(llama_model_load_from_file(argv[1], llama_model_default_params()));
  if (model == nullptr) {
    std::fprintf(stderr, "llama_cpp_engine: %s cannot be loaded\n", argv[1]);
    return 1;
  }
  Engine engine(std::move(model), threads, std::atoi(argv[3]));
  if (!engine.ok()) {
    std::fprintf(stderr, "llama_cpp_engine: no context for %s tokens\n", argv[3]);
    return 1;
  }
  std::printf(
      "{\"ready\":true,\"version\":\"%s\",\"system\":\"%s\",\"threads\":%d,\"vocab_size\":%d,"
      "\"load_seconds\":%.6f,\"rss_bytes\":%" PRIu64 "}\n",
      llama_version(), llama_print_system_info(), threads, engine.vocab_size(), Seconds(start),
      MemoryOf("VmRSS"));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const Answer answer = Run(engine, line);
    std::printf("{\"command\":\"%s\",%s%s%s}\n", line.c_str(), answer.error.empty() ? "" : "\"error\":\"",
                answer.error.empty() ? answer.fields.c_str() : answer.error.c_str(),
                answer.error.empty() ? "" : "\"");
    std::fflush(stdout);
  }
  return 0;
}
