#ifndef BATON_ENGINE_TOKENIZER_NFC_H_
#define BATON_ENGINE_TOKENIZER_NFC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// `text`, valid UTF-8, in Unicode normalization form C. INTERNAL when ICU cannot load its data.
absl::StatusOr<std::string> NormalizeNfc(std::string_view text);

}  // namespace baton

#endif  // BATON_ENGINE_TOKENIZER_NFC_H_
