#include "tests/unit/exec/plans.h"

#include "tests/unit/exec/plan_builder.h"

namespace harpe::test {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

std::string mesh_of(std::int64_t ranks) { return "mesh one = gpu:" + number(ranks) + "\n"; }

std::string gemm_program(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& dtype) {
  return "program gemm {\n  axis M = " + number(m) + "\n  axis N = " + number(n) +
         "\n  axis K = " + number(k) + "\n  buffer a : " + dtype +
         "[M, K] in\n  buffer b : " + dtype + "[K, N] in\n  buffer c : " + dtype +
         "[M, N] out\n  nest mm over (M, N, K) {\n    c sum= matmul(a, b)\n  }\n}\n";
}

// The owner's part of a reduce-scatter of `sources`; the returned Ref reads its result.
Ref add_reduce(PlanBuilder& builder, std::int64_t owner, const std::vector<Ref>& sources,
               const Box& block, DType state) {
  const AllocId sum = builder.slot(owner, "sum", "c", Level::Sum, state, {false, true, true});
  const TaskId reduce = builder.task(builder.queue(owner, QueueKind::Sm), TaskKind::Collective,
                                     sources, {ref(sum, WriteMode::Init, {block})});
  builder.at(reduce).collective = CollectiveOp::ReduceScatter;
  builder.at(reduce).group = 3;
  builder.at(reduce).nest = "mm";
  return read(sum, {block});
}

DType state_of(const std::string& dtype) { return state_dtype(parse_dtype(dtype).value()); }

}  // namespace

Plan exchange(std::int64_t ranks, std::int64_t size, bool collective) {
  PlanBuilder builder("program share {\n  axis M = " + number(size) +
                          "\n  buffer x : f32[M] in\n  buffer y : f32[M] out\n"
                          "  nest move over (M) {\n    y = copy(x)\n  }\n}\n",
                      mesh_of(ranks),
                      "commir share for share on one {\n  split M = m0:" + number(ranks) +
                          " * m1:_\n  place x[m0@gpu]\n  place y[]\n  nest move {\n    leaf\n  }\n"
                          "}\n");
  std::vector<AllocId> slots;
  slots.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    slots.push_back(builder.slot(rank, "st", "x", Level::Stage, DType::F32, {true, true}));
  }
  std::map<std::int64_t, std::vector<TaskId>> last;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<Ref> reads;
    std::vector<Ref> writes;
    for (std::int64_t peer = 0; peer < ranks; ++peer) {
      const Box block = {one(peer), one(0)};
      reads.push_back(read(builder.home_of(peer, "x"), {block}));
      writes.push_back(ref(slots[static_cast<std::size_t>(rank)], WriteMode::Set, {block}));
    }
    std::vector<TaskId> moves;
    if (collective) {
      const QueueId queue = builder.queue(rank, QueueKind::Nccl);
      moves.push_back(builder.task(queue, TaskKind::Collective, reads, writes));
      builder.at(moves[0]).group = 0;
      builder.sync(PlanBuilder::entry(rank), moves[0]);
    } else {
      for (std::int64_t peer = 0; peer < ranks; ++peer) {
        const QueueId queue = builder.queue(rank, QueueKind::Ce);
        const auto i = static_cast<std::size_t>(peer);
        moves.push_back(builder.task(queue, TaskKind::Copy, {reads[i]}, {writes[i]}));
        builder.sync(PlanBuilder::entry(peer), moves.back());
        last[peer].push_back(moves.back());
      }
    }
    const Box all = {upto(ranks), one(0)};
    const TaskId copy =
        builder.task(builder.queue(rank, QueueKind::Sm), TaskKind::Compute,
                     {read(slots[static_cast<std::size_t>(rank)], {all})},
                     {ref(builder.home_of(rank, "y"), WriteMode::Set, {all})}, {all});
    builder.sync(moves.back(), copy);
    last[rank].push_back(copy);
  }
  return builder.finish(last);
}

Plan gather_gemm(std::int64_t ranks, std::int64_t m, std::int64_t n, std::int64_t k,
                 const std::string& dtype) {
  PlanBuilder builder(gemm_program(m, n, k, dtype), mesh_of(ranks),
                      "commir fetch for gemm on one {\n  split M = m0:" + number(ranks) +
                          " * m1:_\n  split N = n0:" + number(ranks) +
                          " * n1:_\n  place a[m0@gpu]\n  place b[n0@gpu]\n  place c[n0@gpu]\n"
                          "  nest mm {\n    par n0 on gpu\n    for m0 skew gpu\n"
                          "    stage a over gpu direct depth 2\n    leaf\n  }\n}\n");
  const DType type = parse_dtype(dtype).value();
  std::map<std::int64_t, std::vector<TaskId>> last;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    // Digits: a m0 m1 K, b K n0 n1, c m0 m1 n0 n1.
    const AllocId slots[] = {
        builder.slot(rank, "st.0", "a", Level::Stage, type, {false, true, true}),
        builder.slot(rank, "st.1", "a", Level::Stage, type, {false, true, true})};
    const AllocId acc =
        builder.slot(rank, "acc", "c", Level::Acc, state_of(dtype), {true, true, false, true});
    std::vector<TaskId> computes;
    for (std::int64_t step = 0; step < ranks; ++step) {
      const std::int64_t owner = (rank + step) % ranks;
      const Box rows = {one(owner), one(0), one(0)};
      AllocId source = builder.home_of(rank, "a");
      std::optional<TaskId> pull;
      if (step > 0) {
        source = slots[step % 2];
        pull = builder.task(builder.queue(rank, QueueKind::Ce), TaskKind::Copy,
                            {read(builder.home_of(owner, "a"), {rows})},
                            {ref(source, WriteMode::Set, {rows})});
        builder.sync(PlanBuilder::entry(owner), *pull);
        if (step > 2) builder.sync(computes[static_cast<std::size_t>(step) - 2], *pull);
        last[owner].push_back(*pull);
      }
      computes.push_back(builder.task(
          builder.queue(rank, QueueKind::Sm), TaskKind::Compute,
          {read(source, {rows}), read(builder.home_of(rank, "b"), {{one(0), one(rank), one(0)}})},
          {ref(acc, WriteMode::Init, {{one(owner), one(0), one(rank), one(0)}})},
          {{one(owner), one(0), one(rank), one(0), one(0)}}));
      if (pull) builder.sync(*pull, computes.back());
    }
    const Box columns = {upto(ranks), one(0), one(rank), one(0)};
    const TaskId round =
        builder.task(builder.queue(rank, QueueKind::Sm), TaskKind::Finalise, {read(acc, {columns})},
                     {ref(builder.home_of(rank, "c"), WriteMode::Set, {columns})});
    last[rank].push_back(round);
  }
  return builder.finish(last);
}

Plan scatter_gemm(std::int64_t ranks, std::int64_t m, std::int64_t n, std::int64_t k,
                  const std::string& dtype, bool collective) {
  PlanBuilder builder(gemm_program(m, n, k, dtype), mesh_of(ranks),
                      "commir push for gemm on one {\n  split M = m0:" + number(ranks) +
                          " * m1:_\n  split K = k0:" + number(ranks) +
                          " * k1:_\n  place a[k0@gpu]\n  place b[k0@gpu]\n  place c[m0@gpu]\n"
                          "  nest mm {\n    par k0 on gpu\n    drain c over gpu bulk\n    leaf\n"
                          "  }\n}\n");
  const DType state = state_of(dtype);
  // Digits: a m0 m1 k0 k1, b k0 k1 N, c m0 m1 N, iteration m0 m1 N k0 k1.
  const auto block = [](std::int64_t owner) { return Box{one(owner), one(0), one(0)}; };
  std::vector<AllocId> acc;
  std::vector<std::vector<AllocId>> inbox;  // [owner][source]
  std::vector<TaskId> computes;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    acc.push_back(builder.slot(rank, "acc", "c", Level::Acc, state, {true, true, true}));
    inbox.emplace_back();
    for (std::int64_t source = 0; source < ranks; ++source) {
      inbox.back().push_back(builder.slot(rank, "in." + number(source), "c", Level::Inbox, state,
                                          {false, true, true}));
    }
    computes.push_back(
        builder.task(builder.queue(rank, QueueKind::Sm), TaskKind::Compute,
                     {read(builder.home_of(rank, "a"), {{upto(ranks), one(0), one(rank), one(0)}}),
                      read(builder.home_of(rank, "b"), {{one(rank), one(0), one(0)}})},
                     {ref(acc.back(), WriteMode::Init, {{upto(ranks), one(0), one(0)}})},
                     {{upto(ranks), one(0), one(0), one(rank), one(0)}}));
    builder.sync(PlanBuilder::entry(rank), computes.back());
  }
  std::map<std::int64_t, std::vector<TaskId>> last;
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    std::vector<Ref> sources;
    std::vector<TaskId> pushes;
    for (std::int64_t source = 0; source < ranks; ++source) {
      const auto from = static_cast<std::size_t>(source);
      if (collective || source == owner) {
        sources.push_back(read(acc[from], {block(owner)}));
        continue;
      }
      const AllocId in = inbox[static_cast<std::size_t>(owner)][from];
      pushes.push_back(builder.task(builder.queue(source, QueueKind::Ce), TaskKind::Copy,
                                    {read(acc[from], {block(owner)})},
                                    {ref(in, WriteMode::Set, {block(owner)})}));
      builder.sync(computes[from], pushes.back());
      builder.sync(PlanBuilder::entry(owner), pushes.back());
      last[source].push_back(pushes.back());
      sources.push_back(read(in, {block(owner)}));
    }
    const QueueId queue = builder.queue(owner, QueueKind::Sm);
    const Ref home = ref(builder.home_of(owner, "c"), WriteMode::Set, {block(owner)});
    if (collective) sources = {add_reduce(builder, owner, sources, block(owner), state)};
    const TaskId round = builder.task(queue, TaskKind::Finalise, sources, {home});
    for (const TaskId push : pushes) builder.sync(push, round);
    last[owner].push_back(round);
  }
  return builder.finish(last);
}

Plan split_keys(std::int64_t ranks, std::int64_t queries, std::int64_t keys, bool causal,
                const std::string& dtype) {
  const std::string where = causal ? " where causal(Sq, Skv)" : "";
  PlanBuilder builder(
      "program attn {\n  axis B = 2\n  axis Sq = " + number(queries) +
          "\n  axis Skv = " + number(keys) +
          "\n  axis H = 2\n  axis G = 2\n  axis D = 8\n  axis Dv = 6\n  buffer q : " + dtype +
          "[B, Sq, (H, G), D] in\n  buffer k : " + dtype +
          "[B, Skv, H, D] in\n  buffer v : " + dtype + "[B, Skv, H, Dv] in\n  buffer o : " + dtype +
          "[B, Sq, (H, G), Dv] out\n  buffer l : f32[B, (H, G), Sq] out\n"
          "  nest fwd over (B, H, G, Sq, Skv) whole (D, Dv) {\n"
          "    (o, l) lse= attn_fwd(q, k, v)" +
          where + "\n  }\n}\n",
      mesh_of(ranks),
      "commir tree for attn on one {\n  split Sq = q0:" + number(ranks) +
          " * q1:_\n  split Skv = k0:" + number(ranks) +
          " * k1:_\n  place q[]\n  place k[k0@gpu]\n  place v[k0@gpu]\n  place o[q0@gpu]\n"
          "  place l[q0@gpu]\n  nest fwd {\n    par k0 on gpu\n    drain o over gpu bulk\n"
          "    drain l over gpu bulk\n    leaf\n  }\n}\n");
  // Digits: q B q0 q1 H G D, k B k0 k1 H D, o like q, l B H G q0 q1, iteration B H G q0 q1 k0 k1.
  const auto o_block = [](Range q0) { return Box{one(0), q0, one(0), one(0), one(0), one(0)}; };
  const auto l_block = [](Range q0) { return Box{one(0), one(0), one(0), q0, one(0)}; };
  const std::vector<bool> hold_o(6, true);
  const std::vector<bool> hold_l(5, true);
  std::vector<AllocId> acc_o;
  std::vector<AllocId> acc_l;
  std::vector<TaskId> computes;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    acc_o.push_back(builder.slot(rank, "o.acc", "o", Level::Acc, DType::F32, hold_o));
    acc_l.push_back(builder.slot(rank, "l.acc", "l", Level::Acc, DType::F32, hold_l));
    const Range all = upto(ranks);
    computes.push_back(builder.task(
        builder.queue(rank, QueueKind::Sm), TaskKind::Compute,
        {read(builder.home_of(rank, "q"), {o_block(all)}),
         read(builder.home_of(rank, "k"), {{one(0), one(rank), one(0), one(0), one(0)}}),
         read(builder.home_of(rank, "v"), {{one(0), one(rank), one(0), one(0), one(0)}})},
        {ref(acc_o.back(), WriteMode::Init, {o_block(all)}),
         ref(acc_l.back(), WriteMode::Init, {l_block(all)})},
        {{one(0), one(0), one(0), all, one(0), one(rank), one(0)}}));
    builder.sync(PlanBuilder::entry(rank), computes.back());
  }
  std::map<std::int64_t, std::vector<TaskId>> last;
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    std::vector<Ref> sources;
    for (std::int64_t source = 0; source < ranks; ++source) {
      const auto from = static_cast<std::size_t>(source);
      sources.push_back(read(acc_o[from], {o_block(one(owner))}));
      sources.push_back(read(acc_l[from], {l_block(one(owner))}));
    }
    const TaskId round =
        builder.task(builder.queue(owner, QueueKind::Sm), TaskKind::Finalise, sources,
                     {ref(builder.home_of(owner, "o"), WriteMode::Set, {o_block(one(owner))}),
                      ref(builder.home_of(owner, "l"), WriteMode::Set, {l_block(one(owner))})});
    for (std::int64_t source = 0; source < ranks; ++source) {
      builder.sync(computes[static_cast<std::size_t>(source)], round);
      last[source].push_back(round);
    }
  }
  return builder.finish(last);
}

}  // namespace harpe::test
