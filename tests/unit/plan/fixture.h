#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/text.h"
#include "plan/plan.h"
#include "plan/text.h"
#include "support/hash.h"

namespace harpe::test {

constexpr std::string_view kGemm = R"(program gemm {
  axis M = 6
  axis N = 4
  axis K = 5
  buffer A : bf16[M, K] in
  buffer B : bf16[K, N] in
  buffer C : bf16[M, N] out
  nest mm over (M, N, K) {
    C sum= matmul(A, B)
  }
}
)";
constexpr std::string_view kMesh = "mesh one = gpu:2\n";
constexpr std::string_view kForm = R"(commir ag_ring for gemm on one {
  split M = m0:2 * m1:3
  split N = n0:2 * n1:_
  place A[m0@gpu]
  place B[n0@gpu]
  place C[n0@gpu]
  nest mm {
    par n0 on gpu
    for m0 skew gpu
    stage A over gpu relay by src depth 2 via ce signal flag
    leaf kernel "gemm" sm 132
  }
}
)";

inline Cursor open(std::string_view text) {
  Checked<Cursor> cursor = Cursor::open(text);
  EXPECT_TRUE(cursor.ok());
  return std::move(cursor).value();
}

// Program, mesh and normal form of the ring, without allocations, queues or tasks.
inline Plan subject() {
  Plan plan;
  Cursor program = open(kGemm);
  plan.program = parse_program(program).value();
  Cursor mesh = open(kMesh);
  plan.mesh = parse_mesh(mesh).value();
  Cursor form = open(kForm);
  plan.form = parse_form(form).value();
  return plan;
}

inline Range one(std::int32_t value) { return {value, value + 1}; }

// Digits of the ring: A m0 m1 K, B K n0 n1, C m0 m1 n0 n1, iteration m0 m1 n0 n1 K.
inline Box box_of_a(std::int32_t m0) { return {one(m0), {0, 3}, one(0)}; }
inline Box box_of_b(std::int32_t n0) { return {one(0), one(n0), one(0)}; }
inline Box box_of_c(std::int32_t m0, std::int32_t n0) { return {one(m0), {0, 3}, one(n0), one(0)}; }
inline Box iteration(std::int32_t m0, std::int32_t n0) {
  return {one(m0), {0, 3}, one(n0), one(0), one(0)};
}

inline void add_rank(Plan& plan, RankId rank) {
  const auto alloc = [&](std::string name, std::string buffer, Level level, DType dtype,
                         std::vector<bool> holds, std::int64_t offset, std::int64_t bytes) {
    plan.allocs.push_back({.rank = rank,
                           .name = std::move(name),
                           .buffer = std::move(buffer),
                           .level = level,
                           .dtype = dtype,
                           .holds = std::move(holds),
                           .offset = offset,
                           .bytes = bytes});
  };
  alloc("A.home", "A", Level::Home, DType::BF16, {false, true, true}, 0, 30);
  alloc("B.home", "B", Level::Home, DType::BF16, {true, false, true}, 256, 20);
  alloc("C.home", "C", Level::Home, DType::BF16, {true, true, false, true}, 512, 24);
  alloc("mm.A.st0.1", "A", Level::Stage, DType::BF16, {false, true, true}, 768, 30);
  alloc("mm.C.acc", "C", Level::Acc, DType::F32, {true, true, false, true}, 1024, 48);
  plan.queues.push_back({.rank = rank, .kind = QueueKind::Host});
  plan.queues.push_back({.rank = rank, .kind = QueueKind::Sm});
  plan.queues.push_back({.rank = rank, .kind = QueueKind::Ce});
}

inline Ref ref(std::int64_t alloc, WriteMode mode, std::vector<Box> boxes) {
  return {.alloc = AllocId(alloc), .mode = mode, .boxes = std::move(boxes), .when = {}};
}

inline Task compute(std::int32_t rank, std::int32_t m0, std::int64_t a) {
  const std::int64_t first = rank * 5;
  Task task;
  task.queue = QueueId(rank * 3 + 1);
  task.kind = TaskKind::Compute;
  task.nest = "mm";
  task.iter = {iteration(m0, rank)};
  task.reads = {ref(first + a, WriteMode::Read, {box_of_a(m0)}),
                ref(first + 1, WriteMode::Read, {box_of_b(rank)})};
  task.writes = {ref(first + 4, WriteMode::Init, {box_of_c(m0, rank)})};
  task.kernel = 0;
  task.leaf_kernel = "gemm";
  return task;
}

inline Task push(std::int32_t rank) {
  const std::int32_t peer = 1 - rank;
  Task task;
  task.queue = QueueId(rank * 3 + 2);
  task.kind = TaskKind::Copy;
  task.reads = {ref(rank * 5, WriteMode::Read, {box_of_a(rank)})};
  task.writes = {ref(peer * 5 + 3, WriteMode::Set, {box_of_a(rank)})};
  task.how = How::Relay;
  task.via = Via::Ce;
  task.bytes = 30;
  return task;
}

inline Task finalise(std::int32_t rank) {
  const Box both = {{0, 2}, {0, 3}, one(rank), one(0)};
  Task task;
  task.queue = QueueId(rank * 3 + 1);
  task.kind = TaskKind::Finalise;
  task.nest = "mm";
  task.reads = {ref(rank * 5 + 4, WriteMode::Read, {both})};
  task.writes = {ref(rank * 5 + 2, WriteMode::Set, {both})};
  return task;
}

inline Task boundary(std::int32_t rank, TaskKind kind) {
  Task task;
  task.queue = QueueId(rank * 3);
  task.kind = kind;
  return task;
}

// AG+GEMM on two ranks: each computes with its own block of A, pushes it to the other rank,
// computes with the block that it received, and rounds. Tasks in pairs, rank 0 first: entry, copy,
// compute, compute, finalise, exit.
inline Plan ring() {
  Plan plan = subject();
  for (std::int32_t rank = 0; rank < 2; ++rank) add_rank(plan, RankId(rank));
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    plan.tasks.push_back(boundary(rank, TaskKind::Entry));
  }
  for (std::int32_t rank = 0; rank < 2; ++rank) plan.tasks.push_back(push(rank));
  for (std::int32_t rank = 0; rank < 2; ++rank) plan.tasks.push_back(compute(rank, rank, 0));
  for (std::int32_t rank = 0; rank < 2; ++rank) plan.tasks.push_back(compute(rank, 1 - rank, 3));
  for (std::int32_t rank = 0; rank < 2; ++rank) plan.tasks.push_back(finalise(rank));
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    plan.tasks.push_back(boundary(rank, TaskKind::Exit));
  }
  const auto sync = [&](std::int64_t from, std::int64_t to, SyncKind kind, std::int32_t flag) {
    plan.syncs.push_back({.from = TaskId(from), .to = TaskId(to), .kind = kind, .flag = flag});
  };
  sync(0, 4, SyncKind::Event, -1);
  sync(1, 5, SyncKind::Event, -1);
  sync(2, 7, SyncKind::Flag, 0);
  sync(3, 6, SyncKind::Flag, 0);
  sync(8, 10, SyncKind::Event, -1);
  sync(9, 11, SyncKind::Event, -1);
  plan.barriers.push_back(
      {.from = {TaskId(0), TaskId(1)}, .to = {TaskId(2), TaskId(3)}, .flag = 1});
  return plan;
}

// The body under a header with the right hash.
inline std::string with_hash(std::string_view body) {
  return "plan version 1 hash \"" + hash_text(body) + "\"\n" + std::string(body);
}
inline std::string body_of(std::string_view text) {
  return std::string(text.substr(text.find('\n') + 1));
}

}  // namespace harpe::test
