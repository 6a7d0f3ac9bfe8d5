#pragma once

#include <string>
#include <string_view>

namespace harpe {

// 128-bit FNV-1a of a text, as 32 hexadecimal digits: identity of canonical texts, not security.
[[nodiscard]] std::string hash_text(std::string_view text);

}  // namespace harpe
