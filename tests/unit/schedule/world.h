#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "schedule/primitive.h"
#include "schedule/replay.h"
#include "schedule/source_file.h"

namespace harpe {

// The programs, meshes and forms of the executable model's examples.
[[nodiscard]] const SourceFile& example_file();

// A script of steps for `program` on `mesh`, both from the examples.
[[nodiscard]] Script script_of(std::string_view program, std::string_view mesh,
                               std::string_view steps);
[[nodiscard]] Checked<NormalForm> replay_example(const Script& script);

// The form that the steps make, between its header and last brace, or the refusal.
[[nodiscard]] std::string form_after(std::string_view program, std::string_view mesh,
                                     std::string_view steps);

// The refusal of the last step, without the note on its place; "accepted" if there is none. Also
// tests the law of check: two calls give the same answer and leave the state unchanged.
[[nodiscard]] std::string refusal_of(std::string_view program, std::string_view mesh,
                                     std::string_view steps);

}  // namespace harpe
