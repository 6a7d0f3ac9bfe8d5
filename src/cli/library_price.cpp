#include "cli/library_price.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace harpe::cli {

void add_libraries(const std::optional<LibraryPrice>& price, Rows& rows) {
  if (!price || !price->is_faster()) return;
  rows.emplace_back("libraries",
                    fmt::format("would be faster: {} by NCCL and cuBLASLt is predicted at {}, the "
                                "schedule at {}; `harpe run … --schedule library` runs them, "
                                "`harpe tune … --measure` measures both",
                                price->way, print_seconds(price->time.seconds()),
                                print_seconds(price->schedule.seconds())));
}

Json price_to_json(const std::optional<LibraryPrice>& price) {
  if (!price) return {};
  return {{"way", price->way},
          {"predicted_us", price->time.microseconds()},
          {"schedule_us", price->schedule.microseconds()},
          {"ratio", price->ratio()},
          {"faster", price->is_faster()}};
}

}  // namespace harpe::cli
