#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/run.h"
#include "sim/simulate.h"
#include "support/diag.h"

namespace harpe::cli {

// Parses values of flags that several verbs share. Errors: U109.

// `text` as an integer of [low, high].
[[nodiscard]] Checked<std::int64_t> parse_count(std::string_view flag, std::string_view text,
                                                std::int64_t low, std::int64_t high);

// "NAME=FILE", both non-empty. Errors: also U116 a name twice.
[[nodiscard]] Checked<std::vector<NamedFile>> parse_named_files(std::string_view flag,
                                                                std::span<const std::string> words);

// "3=25.5": rank 3 starts 25.5 microseconds late.
[[nodiscard]] Checked<SimulateOptions::Delay> parse_delay(const std::string& text,
                                                          std::int64_t ranks);

// "graph", "host".
[[nodiscard]] Checked<Launch> parse_launch(const std::string& text);

}  // namespace harpe::cli
