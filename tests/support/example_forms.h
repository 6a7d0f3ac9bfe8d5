#pragma once

#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"

namespace harpe::test {

struct Example {
  Program program;
  Mesh mesh;
  NormalForm form;
};

// The normal forms of tests/oracle/examples in the order of the files, each with its mesh and its
// program. The programs declare all their leaves.
[[nodiscard]] std::vector<Example> example_forms();

}  // namespace harpe::test
