// Any bytes as a client's GenerateRequest: they are refused with a text that is UTF-8, or make a call within
// every limit.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/check.h"
#include "common/parse_message.h"
#include "common/utf8.h"
#include "router/read_request.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

constexpr uint32_t kContext = 64;

const ServedModel& Model() {
  static const ServedModel* const model = [] {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "request_fuzzer";
    std::filesystem::create_directories(folder);
    return ServedModel::Load(WriteTinyModel(Architecture::kLlama, 1, folder.string()))->release();
  }();
  return *model;
}

void CheckRefusal(const absl::Status& status) {
  BATON_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kNotFound);
  BATON_CHECK(!status.message().empty() && IsValidUtf8(std::string(status.message())));
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  baton::v1::GenerateRequest request;
  const absl::Status parsed = baton::ParseMessage(bytes, &request);
  if (!parsed.ok()) {
    baton::CheckRefusal(parsed);
    return 0;
  }
  if (!request.has_request_id()) request.set_request_id("r");
  const baton::ServedModel& model = baton::Model();
  const absl::StatusOr<baton::CallSpec> spec =
      baton::ReadRequest(request, model, baton::kContext, baton::RequestLimits(), 1, absl::UnixEpoch());
  if (!spec.ok()) {
    baton::CheckRefusal(spec.status());
    return 0;
  }
  BATON_CHECK(!spec->prompt.empty() && spec->prompt.size() + spec->max_tokens <= baton::kContext);
  BATON_CHECK(spec->min_tokens <= spec->max_tokens && spec->sampling.has_seed());
  for (const baton::TokenId id : spec->prompt) BATON_CHECK(id < model.tokenizer().vocab_size());
  return 0;
}
