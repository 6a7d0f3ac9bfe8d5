#include "compile/machines.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

std::string default_of(std::int64_t ranks) {
  const Checked<Machine> machine = default_machine(Mesh{.name = "m", .axes = {{"x", ranks}}});
  return machine.ok() ? machine->name : render(machine.error());
}

TEST(Machines, the_default_is_the_smallest_that_holds_the_mesh) {
  EXPECT_EQ(default_of(1), "h200x8");
  EXPECT_EQ(default_of(8), "h200x8");
  EXPECT_EQ(default_of(9), "h200x8x2");
  EXPECT_EQ(default_of(64), "h200x8x8");
  EXPECT_EQ(default_of(1024), "h200x8x128");
  EXPECT_EQ(default_of(1025),
            "error[U133]: no shipped machine has 1025 processors; the largest, `h200x8x128`, has "
            "1024; name one: `machine=FILE.machine`");
}

TEST(Machines, shipped_ones_load_by_name) {
  for (const Machine& machine : list_machines()) {
    const Checked<Machine> loaded = load_machine(machine.name);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(*loaded, machine);
  }
  EXPECT_EQ(print_levels(*load_machine("h200x8x4")), "8 nvlink x 4 rail");
}

}  // namespace
}  // namespace harpe
