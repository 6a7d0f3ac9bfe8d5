#include "io/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "support/check.h"
#include "support/printable.h"

namespace harpe {
namespace {

constexpr int kOneLine = -1;

void append_break(std::string& out, int indent) {
  if (indent == kOneLine) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * 2, ' ');
}

void append_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      out += "\\ufffd";  // names of files may hold any bytes
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4U];
      out += kHex[static_cast<unsigned char>(c) & 15U];
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> buffer{};
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

}  // namespace

Json Json::object() {
  Json out;
  out.value_ = Object{};
  return out;
}

Json& Json::set(std::string name, Json value) {
  auto* members = std::get_if<Object>(&value_);
  HP_CHECK(members != nullptr, "`" + name + "` is set in a JSON value that is no object");
  members->push_back({std::move(name), std::move(value)});
  return *this;
}

void Json::append(std::string& out, int indent) const {
  const int inner = indent == kOneLine ? kOneLine : indent + 1;
  const auto append_all = [&](char open, char close, const auto& items, const auto& append_item) {
    out += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += inner == kOneLine ? ", " : ",";
      append_break(out, inner);
      append_item(items[i]);
    }
    if (!items.empty()) append_break(out, indent);
    out += close;
  };
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "null";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          append_number(out, value);
        } else if constexpr (std::is_same_v<T, double>) {
          if (std::isfinite(value)) {
            append_number(out, value);
          } else {
            out += "null";
          }
        } else if constexpr (std::is_same_v<T, std::string>) {
          append_string(out, value);
        } else if constexpr (std::is_same_v<T, Array>) {
          append_all('[', ']', value, [&](const Json& item) { item.append(out, inner); });
        } else {
          append_all('{', '}', value, [&](const Member& member) {
            append_string(out, member.name);
            out += ": ";
            member.value.append(out, inner);
          });
        }
      },
      value_);
}

std::string Json::print() const {
  std::string out;
  append(out, 0);
  return out;
}

std::string Json::print_line() const {
  std::string out;
  append(out, kOneLine);
  return out;
}

}  // namespace harpe
