#include "common/parse_message.h"

#include <map>

#include "common/error_details.h"
#include "common/str_cat.h"
#include "common/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"

namespace baton {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// The path of the first text field below `fields`, a message of type `descriptor`, that is not UTF-8; empty
// when there is none or the bytes do not parse.
std::string FindBadText(const UnknownFieldSet& fields, const Descriptor& descriptor,
                        const std::string& path) {
  std::map<int, int> seen;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* field = descriptor.FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    const int index = seen[value.number()]++;
    const std::string name =
        field->is_repeated() ? StrCat(path, field->name(), "[", index, "]") : path + field->name();
    if (field->type() == FieldDescriptor::TYPE_STRING && !IsValidUtf8(value.length_delimited())) return name;
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    UnknownFieldSet inner;
    if (!inner.ParseFromString(value.length_delimited())) continue;
    if (std::string bad = FindBadText(inner, *field->message_type(), name + "."); !bad.empty()) return bad;
  }
  return "";
}

}  // namespace

absl::Status ParseMessage(const std::string& bytes, google::protobuf::Message* message) {
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  UnknownFieldSet fields;
  if (fields.ParseFromString(bytes)) {
    const std::string bad = FindBadText(fields, *message->GetDescriptor(), "");
    if (!bad.empty()) return InvalidField(bad, "is not UTF-8");
  }
  return absl::InvalidArgumentError(
      StrCat("the request is not a well-formed ", message->GetDescriptor()->full_name()));
}

}  // namespace baton
