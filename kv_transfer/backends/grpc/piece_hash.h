#ifndef BATON_KV_TRANSFER_BACKENDS_GRPC_PIECE_HASH_H_
#define BATON_KV_TRANSFER_BACKENDS_GRPC_PIECE_HASH_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/check.h"
#include "xxhash.h"

namespace baton {

// XXH3-64 (seed 0) of the bytes of a piece, as they come. Used by one thread at a time.
class PieceHash {
 public:
  PieceHash() : state_(XXH3_createState(), XXH3_freeState) {
    BATON_CHECK(state_ != nullptr);
    XXH3_64bits_reset(state_.get());
  }

  void Add(std::string_view bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_GRPC_PIECE_HASH_H_
