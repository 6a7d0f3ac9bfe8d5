#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"

namespace harpe::test {

// The example schedules of the design, with their programs and meshes.
struct Example {
  Program program;
  Mesh mesh;
  NormalForm form;
};

// All examples of `programs`; a form for `attn` also appears with the masked program.
[[nodiscard]] std::vector<Example> examples_for(const std::vector<std::string>& programs);

// The program with other axis sizes, and with `dtype` for every bf16 buffer.
[[nodiscard]] Program resized(Program program, const std::map<std::string, std::int64_t>& sizes,
                              DType dtype);

}  // namespace harpe::test
