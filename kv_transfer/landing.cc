#include "kv_transfer/landing.h"

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/protocol_version.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {
namespace {

absl::Status CheckWanted(const v1::WantedRange& range, const KvGeometry& geometry, uint32_t prompt_tokens,
                         absl::Span<const TokenRange> seen) {
  const auto invalid = [](const std::string& what) {
    return absl::InvalidArgumentError("landing.wanted: " + what);
  };
  if (!range.has_group() || !range.has_token_begin() || !range.has_token_end())
    return invalid("a field is missing");
  if (range.group() >= geometry.groups.size()) {
    return invalid(absl::StrCat("group is ", range.group(), ", there are ", geometry.groups.size()));
  }
  const TokenRange tokens{range.token_begin(), range.token_end()};
  const TokenRange left = geometry.NeededAfter(range.group(), prompt_tokens);
  if (tokens.empty() || !left.contains(tokens)) {
    return invalid(absl::StrCat("tokens [", tokens.begin, ", ", tokens.end, ") of group ", range.group(),
                                ", a prompt of ", prompt_tokens, " leaves [", left.begin, ", ", left.end,
                                ")"));
  }
  if (!seen[range.group()].empty()) return invalid(absl::StrCat("group ", range.group(), " occurs twice"));
  return absl::OkStatus();
}

}  // namespace

std::string MintTicket(RandomSource& random) {
  std::string ticket;
  while (ticket.size() < kTicketBytes) {
    uint64_t bits = random.Next();
    for (int i = 0; i < 8; ++i, bits >>= 8) ticket.push_back(static_cast<char>(bits & 0xff));
  }
  return ticket;
}

v1::Landing MakeLanding(std::string_view ticket, std::string_view decode_instance_id,
                        std::string_view address, const std::vector<std::string>& transports,
                        const KvGeometry& geometry, absl::Span<const TokenRange> wanted) {
  v1::Landing landing;
  landing.set_ticket(std::string(ticket));
  landing.set_instance_id(std::string(decode_instance_id));
  landing.set_address(std::string(address));
  for (const std::string& transport : transports) landing.add_transports(transport);
  landing.set_block_tokens(geometry.block_tokens);
  for (uint32_t group = 0; group < wanted.size(); ++group) {
    if (wanted[group].empty()) continue;
    v1::WantedRange* range = landing.add_wanted();
    range->set_group(group);
    range->set_token_begin(wanted[group].begin);
    range->set_token_end(wanted[group].end);
  }
  landing.set_protocol_version(kProtocolVersion);
  return landing;
}

absl::StatusOr<std::vector<TokenRange>> ReadLanding(const v1::Landing& landing, const KvGeometry& geometry,
                                                    uint32_t prompt_tokens) {
  if (landing.protocol_version() < kOldestProtocolVersion || landing.protocol_version() > kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("landing.protocol_version is ",
                                                      landing.protocol_version(), ", supported are ",
                                                      kOldestProtocolVersion, " to ", kProtocolVersion));
  }
  if (landing.ticket().size() != kTicketBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("landing.ticket: ", landing.ticket().size(), " bytes, must be ", kTicketBytes));
  }
  if (landing.address().empty()) return absl::InvalidArgumentError("landing.address is empty");
  if (!std::has_single_bit(landing.block_tokens()) || landing.block_tokens() > kMaxBlockTokens) {
    return absl::InvalidArgumentError(absl::StrCat("landing.block_tokens is ", landing.block_tokens(),
                                                   ", must be a power of two up to ", kMaxBlockTokens));
  }
  std::vector<TokenRange> wanted(geometry.groups.size());
  for (const v1::WantedRange& range : landing.wanted()) {
    if (absl::Status status = CheckWanted(range, geometry, prompt_tokens, wanted); !status.ok())
      return status;
    wanted[range.group()] = {range.token_begin(), range.token_end()};
  }
  return wanted;
}

absl::StatusOr<std::string> ChooseTransport(const v1::Landing& landing, const std::vector<std::string>& own) {
  for (const std::string& transport : landing.transports()) {
    if (std::find(own.begin(), own.end(), transport) != own.end()) return transport;
  }
  return absl::FailedPreconditionError(absl::StrCat("no transport in common: decode has [",
                                                    absl::StrJoin(landing.transports(), ", "),
                                                    "], prefill has [", absl::StrJoin(own, ", "), "]"));
}

bool EqualTickets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace baton
