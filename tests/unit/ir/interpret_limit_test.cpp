#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "ir/instantiate.h"
#include "ir/interpret.h"
#include "ir/interpret_math.h"
#include "ir/text.h"
#include "support/time_limit.h"

namespace harpe {
namespace interpret_limit_test {

Program program_of(const std::string& text) {
  Cursor cursor = Cursor::open(text).value();
  return instantiate(parse_program(cursor).value(), {}).value();
}

Program product(int size) {
  const std::string n = std::to_string(size);
  return program_of("program gemm { axis M = " + n + " axis N = " + n + " axis K = " + n +
                    " buffer a : f32[M, K] in buffer b : f32[K, N] in buffer c : f32[M, N] out"
                    " nest mm over (M, N, K) { c sum= matmul(a, b) } }");
}

TensorMap zeros_for(const Program& program) {
  TensorMap inputs;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    inputs.emplace(buffer->name, make_tensor(buffer->dtype, shape_of(program, *buffer)));
  }
  return inputs;
}

std::string end_of(const Program& program, const TimeLimit& limit, int threads) {
  const Checked<Meaning> meaning =
      interpret(program, zeros_for(program), std::nullopt, threads, {}, &limit);
  return meaning.ok() ? "done" : render(meaning.error());
}

constexpr const char* kGivenUp =
    "error[I505]: the reference of `gemm` was given up: the time for it is over; give it more "
    "time";

TEST(InterpretLimit, ends_within_a_product_wherever_it_is_over) {
  const Program program = product(1400);  // of 80 tiles and more, each some milliseconds
  for (int threads : {1, 3}) {
    for (int left : {0, 1, 3}) {
      int asked = 0;
      const auto caller = std::this_thread::get_id();
      TimeLimit limit;
      limit.interrupted = [&] {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        return ++asked > left;
      };
      EXPECT_EQ(end_of(program, limit, threads), kGivenUp);
      EXPECT_EQ(asked, left + 1);
    }
  }
}

TEST(InterpretLimit, changes_nothing_where_it_is_not_over) {
  int asked = 0;
  TimeLimit limit;
  limit.interrupted = [&] { return ++asked < 0; };
  EXPECT_EQ(end_of(product(40), limit, 2), "done");
  EXPECT_GT(asked, 0);
}

TEST(InterpretLimit, ends_every_leaf) {
  const std::string attention =
      "program p { axis B = 1 axis Q = 8 axis K = 8 axis H = 1 axis G = 2 axis D = 4"
      " buffer q : f32[B, Q, (H, G), D] in buffer k : f32[B, K, H, D] in"
      " buffer v : f32[B, K, H, D] in";
  for (const std::string& text :
       {attention + " buffer o : f32[B, Q, (H, G), D] out buffer l : f32[B, (H, G), Q] out"
                    " nest n over (B, H, G, Q, K) whole (D) { (o, l) lse= attn_fwd(q, k, v) } }",
        attention + " buffer g : f32[B, Q, (H, G), D] in buffer l : f32[B, (H, G), Q] in"
                    " buffer d : f32[B, (H, G), Q] in buffer dq : f32[B, Q, (H, G), D] out"
                    " buffer dk : f32[B, K, H, D] out buffer dv : f32[B, K, H, D] out"
                    " nest n over (B, H, G, Q, K) whole (D)"
                    " { (dq, dk, dv) sum= attn_bwd(q, k, v, g, l, d) } }",
        std::string("program p { axis M = 8 axis N = 4 buffer x : f32[M, N] in"
                    " buffer y : f32[M, N] out nest n over (M, N) { y = gelu(x) } }"),
        std::string("program p { axis M = 8 axis N = 4 buffer x : f32[M, N] in"
                    " buffer y : f32[M] out nest n over (M) whole (N) { y = rowdot(x, x) } }"),
        std::string("program p { axis M = 8 axis N = 4 buffer x : f32[M, N] in"
                    " buffer y : f32[M, N] out nest n over (M, N) { y = copy(x) } }")}) {
    TimeLimit limit;
    limit.interrupted = [] { return true; };
    EXPECT_EQ(end_of(program_of(text), limit, 2).substr(0, 35),
              "error[I505]: the reference of `p` w")
        << text;
    EXPECT_EQ(end_of(program_of(text), {}, 2), "done");
  }
}

// The caller has no items left and waits for the other workers.
TEST(Workers, ask_while_others_compute) {
  std::atomic<bool> has_begun = false;
  std::atomic<int> asked = 0;
  TimeLimit limit;
  limit.interrupted = [&] { return ++asked > 4; };
  Workers workers(2, &limit);
  workers.for_each(2, [&](int worker, std::int64_t) {
    if (worker == 0) {
      while (!has_begun) std::this_thread::yield();
      return;
    }
    has_begun = true;
    while (workers.goes_on(worker)) std::this_thread::yield();
  });
  EXPECT_EQ(asked, 5);
  EXPECT_FALSE(workers.goes_on(0));
  std::atomic<int> items = 0;
  workers.for_each(5, [&](int, std::int64_t) { ++items; });
  EXPECT_EQ(items, 0);
}

}  // namespace interpret_limit_test
}  // namespace harpe
