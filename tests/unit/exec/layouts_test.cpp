#include "tests/unit/exec/fixture.h"
#include "tests/unit/exec/plan_builder.h"

// Leaves on buffers with dimensions in any order, and programs with batch axes.
namespace harpe::test {
namespace {

// One rank with everything at home: one state, one Compute, one Finalise.
Plan product_of(const std::string& a, const std::string& b, const std::string& c,
                const std::string& form = "") {
  PlanBuilder builder(
      "program one {\n  axis E = 3\n  axis M = 5\n  axis N = 4\n  axis K = 6\n"
      "  buffer a : f64[" +
          a + "] in\n  buffer b : f64[" + b + "] in\n  buffer c : f64[" + c +
          "] out\n  nest n over (E, M, N, K) {\n    c sum= matmul(a, b)\n  }\n}\n",
      "mesh m = gpu:1\n", "commir f for one on m {\n" + form + "  nest n {\n    leaf\n  }\n}\n");
  const auto whole = [&](const std::string& name) {
    const auto index = static_cast<std::size_t>(builder.blocks().find_buffer(name));
    Box box;
    for (const int digit : builder.blocks().buffers()[index].digits) {
      box.push_back(upto(builder.blocks().digits()[static_cast<std::size_t>(digit)].extent));
    }
    return box;
  };
  Box iter;
  for (const char* axis : {"E", "M", "N", "K"}) {
    const auto index = static_cast<std::size_t>(builder.blocks().find_axis(axis));
    for (const int digit : builder.blocks().axes()[index].digits) {
      iter.push_back(upto(builder.blocks().digits()[static_cast<std::size_t>(digit)].extent));
    }
  }
  const AllocId acc = builder.slot(0, "acc", "c", Level::Acc, DType::F64,
                                   std::vector<bool>(whole("c").size(), true));
  const QueueId queue = builder.queue(0, QueueKind::Sm);
  builder.task(
      queue, TaskKind::Compute,
      {read(builder.home_of(0, "a"), {whole("a")}), read(builder.home_of(0, "b"), {whole("b")})},
      {ref(acc, WriteMode::Init, {whole("c")})}, {iter});
  const TaskId round = builder.task(queue, TaskKind::Finalise, {read(acc, {whole("c")})},
                                    {ref(builder.home_of(0, "c"), WriteMode::Set, {whole("c")})});
  return builder.finish({{0, {round}}});
}

// The index of the element at (e, m, n, k) in a tensor with the dimensions `dims`.
std::int64_t index_of(const std::string& dims, const std::map<char, std::int64_t>& at) {
  const std::map<char, std::int64_t> extents = {{'E', 3}, {'M', 5}, {'N', 4}, {'K', 6}};
  std::int64_t index = 0;
  for (const char axis : dims) {
    if (extents.contains(axis)) index = index * extents.at(axis) + at.at(axis);
  }
  return index;
}

void expect_product(const std::string& a, const std::string& b, const std::string& c,
                    const std::string& form = "") {
  const Plan plan = product_of(a, b, c, form);
  Subject subject = prepare(plan);
  run(subject);
  const HostTensor found = subject.executor->output("c").value();
  std::vector<double> wanted(static_cast<std::size_t>(element_count(found)), 0);
  for (std::int64_t e = 0; e < 3; ++e) {
    for (std::int64_t m = 0; m < 5; ++m) {
      for (std::int64_t n = 0; n < 4; ++n) {
        for (std::int64_t k = 0; k < 6; ++k) {
          const std::map<char, std::int64_t> at = {{'E', e}, {'M', m}, {'N', n}, {'K', k}};
          wanted[static_cast<std::size_t>(index_of(c, at))] +=
              load(subject.inputs["a"], index_of(a, at)) *
              load(subject.inputs["b"], index_of(b, at));
        }
      }
    }
  }
  // At most 18 terms below 1 in f64.
  EXPECT_LE(distance(found, wanted), 18 * 18 * unit_roundoff(DType::F64)) << a << b << c << form;
}

TEST(Layouts, multiply_matrices_stored_either_way) {
  for (const char* a : {"E, M, K", "E, K, M"}) {
    for (const char* b : {"E, K, N", "E, N, K"}) {
      for (const char* c : {"E, M, N", "E, N, M", "M, E, N"}) expect_product(a, b, c);
    }
  }
}

TEST(Layouts, multiply_with_the_batch_inside_the_result) {
  expect_product("E, M, K", "E, K, N", "M, N, E");
}

TEST(Layouts, sum_over_axes_that_only_the_operands_share) {
  expect_product("M, E, K", "E, K, N", "M, N");
}

TEST(Layouts, multiply_with_a_batch_axis_of_one_operand) {
  expect_product("E, M, K", "K, N", "E, M, N");
}

TEST(Layouts, multiply_with_blocks_out_of_logical_order) {
  expect_product("E, M, K", "E, K, N", "E, M, N",
                 "  split M = m0:2 * m1:2\n  split K = k0:3\n  layout M zigzag(m1, m0)\n");
}

}  // namespace
}  // namespace harpe::test
