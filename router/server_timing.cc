#include "router/server_timing.h"

#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace baton {

std::string FormatServerTiming(const v1::Timings& timings) {
  // Every field whose name ends in _ms, in the order of the declaration.
  constexpr std::string_view kSuffix = "_ms";
  const google::protobuf::Descriptor& descriptor = *timings.GetDescriptor();
  const google::protobuf::Reflection& reflection = *timings.GetReflection();
  std::string value;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *descriptor.field(i);
    const std::string_view name = field.name();
    if (!name.ends_with(kSuffix) || !reflection.HasField(timings, &field)) continue;
    const std::string word(name.substr(0, name.size() - kSuffix.size()));
    absl::StrAppendFormat(&value, "%s%s;dur=%.3f", value.empty() ? "" : ", ", word,
                          reflection.GetDouble(timings, &field));
  }
  return value;
}

}  // namespace baton
