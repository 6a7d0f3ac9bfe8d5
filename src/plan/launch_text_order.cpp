#include "plan/launch_text_order.h"

#include <array>
#include <string>
#include <utility>

#include "plan/text_parts.h"

namespace harpe::launch {
namespace {

// The words at the beginning of a line of each kind.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kLineWords = {
    {{"launches", ""},
     {"partials16", ""},
     {"box", ""},
     {"signal", ""},
     {"launch", ""},
     {"kernel", ""},
     {"arrival", ""},
     {"panel", ""},
     {"addend", ""},
     {"map", ""},
     {"fused", "store"},
     {"fused", "copy"}}};

bool may_follow(LineKind next, std::optional<LineKind> before) {
  if (!before) return next == LineKind::Header;
  const LineKind last = *before;
  switch (next) {
    case LineKind::Header:
      return false;
    case LineKind::Partials:
      return last < next;
    case LineKind::Box:
    case LineKind::Signal:
      return last <= next;
    case LineKind::Launch:
      return true;
    case LineKind::Kernel:
      return last >= LineKind::Launch;
    case LineKind::Arrival:
    case LineKind::FusedStore:
    case LineKind::FusedCopy:
      return last >= LineKind::Kernel && last <= next;
    case LineKind::Panel:
      return last >= LineKind::Kernel && last <= LineKind::Map;
    case LineKind::Addend:
      return last == LineKind::Panel || last == LineKind::Addend;
    case LineKind::Map:
      return last >= LineKind::Panel && last <= LineKind::Map;
  }
  return false;
}

}  // namespace

Checked<LineKind> take_kind(Cursor& line, std::optional<LineKind> last) {
  std::string expected;
  for (std::size_t i = 0; i < kLineWords.size(); ++i) {
    const auto kind = static_cast<LineKind>(i);
    if (!may_follow(kind, last)) continue;
    const auto [first, second] = kLineWords[i];
    if (line.at(first) && (second.empty() || line.peek(1).text == second)) {
      line.take();
      if (!second.empty()) line.take();
      return kind;
    }
    expected += plan_text::quote(second.empty() ? std::string(first)
                                                : std::string(first) + " " + std::string(second)) +
                ", ";
  }
  expected.resize(expected.size() - 2);
  return line.unexpected(last ? expected + " or the end of the text" : expected);
}

}  // namespace harpe::launch
