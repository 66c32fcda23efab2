#include "engine/tokenizer/nfc.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "common/str_cat.h"

namespace baton {

absl::StatusOr<std::string> NormalizeNfc(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const normalizer = icu::Normalizer2::getNFCInstance(error);
  std::string normalized;
  normalized.reserve(text.size());
  if (U_SUCCESS(error)) {
    icu::StringByteSink<std::string> sink(&normalized);
    normalizer->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
                              nullptr, error);
  }
  if (U_FAILURE(error)) return absl::InternalError(StrCat("ICU cannot normalize: ", u_errorName(error)));
  return normalized;
}

}  // namespace baton
