#include "support/date.h"

#include <chrono>
#include <ctime>

namespace harpe {

std::string date_before(std::int64_t days) {
  const auto then = std::chrono::system_clock::now() - std::chrono::days(days);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(then);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::string text(11, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts));
  return text;
}

}  // namespace harpe
