#pragma once

#include <string>
#include <string_view>

#include "support/diag.h"

namespace harpe {

// Diagnostics name options of a request, and each front end writes them in its own way: the command
// line as a flag, programs as `layout=zigzag`. In a registered text an option is `{option:layout}`
// or `{option:layout=zigzag}`. An argument called `option:NAME` fills the placeholder `{NAME}` with
// such a text; it is a literal of Harpe and never contains users' words.
using OptionWords = std::string (*)(std::string_view name, std::string_view value);

// `layout=zigzag`, or `layout` without a value, as programs in C++ and Python write it;
// render(diag) uses this form.
[[nodiscard]] std::string print_option(std::string_view name, std::string_view value);

// `text` with its options written by `words`; other placeholders stay.
[[nodiscard]] std::string fill_options(std::string_view text, OptionWords words = print_option);
// render() and render_message() of support/diag.h, with options written by `words`.
[[nodiscard]] std::string render(const Diag& diag, std::string_view severity, OptionWords words);
[[nodiscard]] std::string render_message(const Diag& diag, OptionWords words);

}  // namespace harpe
