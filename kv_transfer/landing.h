#ifndef BATON_KV_TRANSFER_LANDING_H_
#define BATON_KV_TRANSFER_LANDING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "baton/v1/leg.pb.h"
#include "common/random_source.h"
#include "engine/kv/kv_geometry.h"
#include "engine/kv/ranges.h"

// The landing that decode makes, the router carries and prefill presents: how it is written and how it is
// read. Pure.
namespace baton {

inline constexpr size_t kTicketBytes = 16;

// A new ticket: 128 bits of `random`, which must not be guessable in production.
std::string MintTicket(RandomSource& random);

// `wanted` is by cache group; empty ranges are left out. `transports` in the order of preference.
v1::Landing MakeLanding(std::string_view ticket, std::string_view decode_instance_id,
                        std::string_view address, const std::vector<std::string>& transports,
                        const KvGeometry& geometry, absl::Span<const TokenRange> wanted);

// What a landing wants, by cache group (empty: nothing), checked in full against the sender's own geometry:
// INVALID_ARGUMENT for a malformed landing or one that wants tokens that a prompt of `prompt_tokens` does not
// leave behind, FAILED_PRECONDITION for a protocol version out of the supported range.
absl::StatusOr<std::vector<TokenRange>> ReadLanding(const v1::Landing& landing, const KvGeometry& geometry,
                                                    uint32_t prompt_tokens);

// The first of the landing's transports that is among `own`, or FAILED_PRECONDITION that names both lists.
absl::StatusOr<std::string> ChooseTransport(const v1::Landing& landing, const std::vector<std::string>& own);

// Compares without telling by its duration where the two differ.
bool EqualTickets(std::string_view a, std::string_view b);

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LANDING_H_
