#include "tests/unit/exec/fixture.h"

namespace harpe::test {
namespace {

// Inputs lie in [-1, 1), so a GEMM of depth k has terms below 1 and sums below k. Each of the k
// additions and the folds round once in the state's type; the result rounds once in its own.
double product_bound(std::int64_t k, DType dtype) {
  const double depth = static_cast<double>(k);
  return (depth + 8) * depth * unit_roundoff(state_dtype(dtype)) + depth * unit_roundoff(dtype);
}

TEST(CpuExecutor, copies_every_block_to_every_rank_whatever_the_size) {
  for (const bool collective : {false, true}) {
    for (const std::int64_t size : {1, 5, 16, 1000}) {
      Subject subject = prepare(exchange(3, size, collective));
      run(subject);
      EXPECT_EQ(subject.executor->output("y").value().data, subject.inputs["x"].data)
          << size << " elements, collective " << collective;
    }
  }
}

TEST(CpuExecutor, multiplies_in_every_floating_type_at_uneven_sizes) {
  for (const std::string dtype : {"f32", "bf16", "f16", "f64"}) {
    for (const std::int64_t m : {2, 37}) {
      Subject subject = prepare(gather_gemm(2, m, 29, 41, dtype));
      run(subject);
      EXPECT_LE(distance(subject.executor->output("c").value(), product(subject.inputs)),
                product_bound(41, parse_dtype(dtype).value()))
          << dtype << " m=" << m;
    }
  }
}

TEST(CpuExecutor, runs_more_ranks_than_rows_with_empty_blocks) {
  Subject subject = prepare(gather_gemm(5, 3, 4, 7, "f32"));
  run(subject);
  EXPECT_LE(distance(subject.executor->output("c").value(), product(subject.inputs)),
            product_bound(7, DType::F32));
}

TEST(CpuExecutor, folds_partial_sums_from_inboxes_and_by_reduce_scatter_to_the_same_bits) {
  for (const std::string dtype : {"f32", "bf16", "f16", "f64"}) {
    Subject subject = prepare(scatter_gemm(4, 33, 300, 53, dtype, false));
    run(subject);
    const HostTensor folded = subject.executor->output("c").value();
    EXPECT_LE(distance(folded, product(subject.inputs)),
              product_bound(53, parse_dtype(dtype).value()))
        << dtype;
    Subject collective = prepare(scatter_gemm(4, 33, 300, 53, dtype, true));
    run(collective);
    EXPECT_EQ(collective.executor->output("c").value().data, folded.data) << dtype;
  }
}

TEST(CpuExecutor, combines_logsumexp_states_of_keys_on_several_ranks) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t queries : {1, 9, 40}) {
      Subject subject = prepare(split_keys(3, queries, 40, causal, "f32"));
      run(subject);
      const AttentionResult wanted = attention(subject.inputs, causal);
      // Values below 1, scores below 8/sqrt(8): a few dozen f32 roundings.
      EXPECT_LE(distance(subject.executor->output("o").value(), wanted.o),
                64 * unit_roundoff(DType::F32));
      EXPECT_LE(distance(subject.executor->output("l").value(), wanted.l),
                64 * unit_roundoff(DType::F32));
    }
  }
}

TEST(CpuExecutor, gives_rows_that_see_no_key_the_identity) {
  // 12 queries, 4 keys, aligned at the end: the first 8 queries see no key.
  Subject subject = prepare(split_keys(2, 12, 4, true, "bf16"));
  run(subject);
  const AttentionResult wanted = attention(subject.inputs, true);
  EXPECT_LE(distance(subject.executor->output("o").value(), wanted.o),
            2 * unit_roundoff(DType::BF16));
  EXPECT_LE(distance(subject.executor->output("l").value(), wanted.l),
            64 * unit_roundoff(DType::F32));
  EXPECT_EQ(load(subject.executor->output("l").value(), 0),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(load(subject.executor->output("o").value(), 0), 0.0);
}

TEST(CpuExecutor, gives_the_same_bits_in_a_thousand_executions_back_to_back) {
  const Plan plan = gather_gemm(4, 13, 11, 9, "bf16");
  const std::vector<std::byte> once = bits_of(plan, {});
  Subject subject = prepare(plan, {.workers = 2});
  const RunStats stats = run(subject, {.iterations = 1000});
  EXPECT_EQ(stats.iterations.size(), 1000U);
  EXPECT_EQ(subject.executor->output("c").value().data, once);
  run(subject, {.iterations = 3});
  EXPECT_EQ(subject.executor->output("c").value().data, once);
}

TEST(CpuExecutor, gives_the_same_bits_under_random_delays_in_both_runners) {
  const Plan plans[] = {scatter_gemm(8, 40, 24, 64, "f32", false),
                        scatter_gemm(8, 40, 24, 64, "f32", true),
                        split_keys(8, 17, 50, true, "f32"), exchange(8, 100, true)};
  for (const Plan& plan : plans) {
    const std::vector<std::byte> expected = bits_of(plan, {.workers = 1});
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const QueueRunner runner = seed % 2 == 0 ? QueueRunner::Pool : QueueRunner::Threads;
      EXPECT_EQ(
          bits_of(plan, {.runner = runner, .workers = 4, .delay_seed = seed}, {.iterations = 5}),
          expected)
          << "seed " << seed;
    }
  }
}

TEST(CpuExecutor, runs_many_more_queues_than_cores) {
  const Plan plan = gather_gemm(32, 64, 64, 16, "f32");
  const std::vector<std::byte> expected = bits_of(plan, {.runner = QueueRunner::Stepper});
  EXPECT_EQ(bits_of(plan, {.workers = 2}), expected);
  EXPECT_EQ(bits_of(plan, {.runner = QueueRunner::Threads}), expected);
}

TEST(CpuExecutor, shows_a_block_that_no_task_writes_as_not_a_number) {
  Plan plan = gather_gemm(2, 4, 4, 4, "f32");
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Finalise) task.writes.front().boxes.clear();
  }
  Subject subject = prepare(plan);
  run(subject);
  EXPECT_TRUE(std::isnan(load(subject.executor->output("c").value(), 0)));
}

TEST(CpuExecutor, notices_outputs_that_differ_between_their_homes) {
  Plan plan = exchange(2, 8, false);
  for (Task& task : plan.tasks) {  // rank 1 does not compute what it received
    if (task.kind == TaskKind::Compute && plan.queues[task.queue.index()].rank == RankId(1)) {
      task.iter.clear();
    }
  }
  Subject subject = prepare(plan);
  run(subject);
  EXPECT_THROW((void)subject.executor->output("y").value(), InternalError);
}

TEST(CpuExecutor, reports_times_traffic_memory_and_a_trace_of_the_last_execution) {
  Plan plan = gather_gemm(2, 64, 64, 64, "f32");
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Copy) task.bytes = 32 * 64 * 4;
  }
  Subject subject = prepare(plan);
  const RunStats stats = run(subject, {.iterations = 3, .trace = true});
  EXPECT_EQ(stats.bytes_moved, 2 * 32 * 64 * 4);
  EXPECT_EQ(stats.peak_bytes, arena_bytes(plan));
  EXPECT_GT(stats.cpu_time.count(), 0);
  ASSERT_EQ(stats.iterations.size(), 3U);
  for (const std::chrono::nanoseconds time : stats.iterations) EXPECT_GE(time.count(), 0);
  ASSERT_EQ(stats.trace.size(), plan.tasks.size());
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    EXPECT_EQ(stats.trace[task].task.index(), task);
    EXPECT_LE(stats.trace[task].start, stats.trace[task].end);
  }
  for (const Sync& sync : plan.syncs) {
    EXPECT_LE(stats.trace[sync.from.index()].end, stats.trace[sync.to.index()].start);
  }
  EXPECT_TRUE(run(subject).trace.empty());
}

TEST(CpuExecutor, rounds_inputs_to_the_type_of_their_buffer) {
  const Plan plan = gather_gemm(2, 1, 1, 1, "bf16");
  Subject subject = prepare(plan);
  for (const char* name : {"a", "b"}) {
    HostTensor third = make_tensor(DType::F64, {1, 1});
    store(third, 0, 1.0 / 3.0);
    (void)subject.executor->set_input(name, third).value();
  }
  run(subject);
  const double third = bf16_to_f32(f32_to_bf16(1.0F / 3.0F));
  EXPECT_EQ(load(subject.executor->output("c").value(), 0),
            bf16_to_f32(f32_to_bf16(static_cast<float>(third * third))));
}

}  // namespace
}  // namespace harpe::test
