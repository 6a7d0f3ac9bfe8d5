#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

constexpr std::string_view kGemm = R"(
program gemm {
  axis M = 64
  axis N = 64
  axis K = 64
  buffer A : bf16[M, K] in
  buffer B : bf16[K, N] in
  buffer C : bf16[M, N] out
  nest mm over (M, N, K) {
    C sum= matmul(A, B)
  }
}
mesh one = gpu:2
)";

constexpr std::string_view kRing = R"(
commir ring for gemm on one {
  split N = n0:2 * n1:_
  split K = c0:2 * c1:_
  place A[c0@gpu]
  place B[n0@gpu]
  place C[n0@gpu]
  nest mm {
    par n0 on gpu
    for c0 skew gpu
    stage A over gpu direct
    leaf
  }
}
)";

constexpr std::string_view kPush = R"(
program gemm {
  axis M = 64
  axis N = 96
  axis K = 96
  buffer A : bf16[M, K] in
  buffer B : bf16[K, N] in
  buffer C : bf16[M, N] out
  nest mm over (M, N, K) {
    C sum= matmul(A, B)
  }
}
mesh one = node:3
commir push for gemm on one {
  split N = n0:3 * n1:_
  split K = c0:3 * c1:_
  place A[c0@node]
  place B[n0@node]
  place C[n0@node]
  nest mm {
    par n0 on node
    for c0 skew node
    stage A over node direct by src depth 3 via proxy signal flag fence dest
    leaf
  }
}
)";

constexpr std::string_view kScatter = R"(
commir scatter for gemm on one {
  split N = n0:2 * n1:_
  split K = c0:2 * c1:_
  place A[c0@gpu]
  place B[c0@gpu]
  place C[n0@gpu]
  nest mm {
    par c0 on gpu
    drain C over gpu bulk via nccl
    leaf
  }
}
)";

constexpr std::string_view kOpen = R"(
commir open for gemm on one {
  split N = n0:2 * n1:_
  split K = c0:2 * c1:_
  place A[c0@gpu]
  place B[c0@gpu]
  place C[] partial sum@gpu
  nest mm {
    par c0 on gpu
    leaf
  }
}
)";

constexpr std::string_view kShare = R"(
program share {
  axis M = 64
  buffer x : f32[M] in
  buffer y : f32[M] out
  nest move over (M) {
    y = copy(x)
  }
}
mesh one = gpu:2
commir gather for share on one {
  split M = m0:2 * m1:_
  place x[m0@gpu]
  place y[]
  nest move {
    stage x over gpu bulk via nccl
    leaf
  }
}
)";

std::string attention(std::int64_t queries, std::int64_t keys, const std::string& mask) {
  return "program attn {\n  axis B = 1\n  axis Sq = " + std::to_string(queries) +
         "\n  axis Skv = " + std::to_string(keys) + R"(
  axis H = 2
  axis G = 1
  axis D = 16
  buffer Q : bf16[B, Sq, (H, G), D] in
  buffer K : bf16[B, Skv, H, D] in
  buffer V : bf16[B, Skv, H, D] in
  buffer O : bf16[B, Sq, (H, G), D] out
  buffer L : f32[B, (H, G), Sq] out
  nest fwd over (B, H, G, Sq, Skv) whole (D) {
    (O, L) lse= attn_fwd(Q, K, V))" +
         mask + "\n  }\n}\n";
}

constexpr std::string_view kSplitDecode = R"(
mesh one = gpu:2
commir decode for attn on one {
  split Skv = k0:2 * k1:_
  split H = h0:2
  place Q[]
  place K[k0@gpu]
  place V[k0@gpu]
  place O[h0@gpu]
  place L[h0@gpu]
  nest fwd {
    par k0 on gpu
    drain O over gpu bulk
    drain L over gpu bulk
    leaf
  }
}
)";

constexpr std::string_view kMasked = R"(
mesh one = gpu:1
commir whole for attn on one {
  split Sq = q0:2 * q1:_
  nest fwd {
    leaf
  }
}
)";

constexpr std::string_view kChain = R"(
program chain {
  axis M = 64
  axis N = 64
  axis K = 64
  buffer a : bf16[M, K] in
  buffer b : bf16[K, N] in
  buffer t : bf16[M, N] temp
  buffer z : bf16[M, N] out
  nest mm over (M, N, K) {
    t sum= matmul(a, b)
  }
  nest mv over (M, N) {
    z = copy(t)
  }
}
mesh one = gpu:1
commir chain for chain on one {
  split M = m0:2 * m1:_
  nest mm {
    leaf
  }
  nest mv {
    leaf
  }
}
)";

constexpr std::string_view kTwice = R"(
program twice {
  axis M = 64
  buffer x : f32[M] in
  buffer y : f32[M] in
  buffer t : f32[M] temp
  buffer z : f32[M] out
  nest first over (M) {
    t = copy(x)
  }
  nest second over (M) {
    t = copy(y)
  }
  nest third over (M) {
    z = copy(t)
  }
}
mesh one = gpu:1
commir twice for twice on one {
  nest first {
    leaf
  }
  nest second {
    leaf
  }
  nest third {
    leaf
  }
}
)";

constexpr std::int64_t kPartBytes = 64 * 32 * 2;  // a rank's part of a GEMM's matrix, in bf16

}  // namespace

RingGemm::RingGemm() : hand(std::string(kGemm) + std::string(kRing)) {
  HandPlan& p = hand;
  a = p.slots("A.home", "A", Level::Home, DType::BF16, ".");
  b = p.slots("B.home", "B", Level::Home, DType::BF16, "*.");
  c = p.slots("C.home", "C", Level::Home, DType::BF16, ".");
  stage = p.slots("mm.A.st0.0", "A", Level::Stage, DType::BF16, ".");
  acc = p.slots("mm.C.acc0", "C", Level::Acc, DType::F32, ".");
  for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
  const std::string own[] = {"0", "1"};
  for (std::size_t r = 0; r < 2; ++r) {
    const TaskId id = p.copy(static_cast<std::int64_t>(r), p.read(a[1 - r], own[1 - r]), stage[r]);
    p.at(id).bytes = kPartBytes;
  }
  for (const WriteMode mode : {WriteMode::Init, WriteMode::Add}) {
    for (std::size_t r = 0; r < 2; ++r) {
      const std::string& part = own[mode == WriteMode::Init ? r : 1 - r];
      p.compute(static_cast<std::int64_t>(r), own[r] + " " + part,
                {p.read(mode == WriteMode::Init ? a[r] : stage[r], part),
                 p.read(b[r], part + " " + own[r])},
                {p.ref(acc[r], mode, own[r])});
    }
  }
  for (std::size_t r = 0; r < 2; ++r) {
    p.task(static_cast<std::int64_t>(r), QueueKind::Sm, TaskKind::Finalise,
           {p.read(acc[r], own[r])}, {p.ref(c[r], WriteMode::Set, own[r])});
  }
  for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
  const std::pair<int, int> edges[] = {{0, 2}, {1, 2}, {1, 3},  {0, 3},  {0, 4},  {1, 5},
                                       {2, 6}, {3, 7}, {8, 10}, {9, 11}, {2, 11}, {3, 10}};
  for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
}

PushGemm::PushGemm() : hand(kPush) {
  HandPlan& p = hand;
  const auto a = p.slots("A.home", "A", Level::Home, DType::BF16, ".");
  const auto b = p.slots("B.home", "B", Level::Home, DType::BF16, "*.");
  const auto c = p.slots("C.home", "C", Level::Home, DType::BF16, ".");
  const auto next = p.slots("mm.A.st0.1", "A", Level::Stage, DType::BF16, ".");
  const auto after = p.slots("mm.A.st0.2", "A", Level::Stage, DType::BF16, ".");
  const auto acc = p.slots("mm.C.acc0", "C", Level::Acc, DType::F32, ".");
  const std::string own[] = {"0", "1", "2"};
  const auto put = [&](std::size_t from, std::size_t to, AllocId slot) {
    const Ref read = p.read(a[from], own[from]);
    const Ref write{.alloc = slot, .mode = WriteMode::Set, .boxes = read.boxes, .when = {}};
    const TaskId id =
        p.task(static_cast<std::int64_t>(from), QueueKind::Proxy, TaskKind::Copy, {read}, {write});
    p.at(id).via = Via::Proxy;
    p.at(id).bytes = kPartBytes;
    p.sync(TaskId(static_cast<std::int64_t>(from)), id);
    p.sync(TaskId(static_cast<std::int64_t>(to)), id);
  };
  const auto compute = [&](std::size_t r, std::size_t part, AllocId from, WriteMode mode) {
    return p.compute(static_cast<std::int64_t>(r), own[r] + " " + own[part],
                     {p.read(from, own[part]), p.read(b[r], own[part] + " " + own[r])},
                     {p.ref(acc[r], mode, own[r])});
  };
  for (std::int64_t r = 0; r < 3; ++r) p.entry(r);
  for (std::size_t r = 0; r < 3; ++r) put(r, (r + 1) % 3, after[(r + 1) % 3]);
  for (std::size_t r = 0; r < 3; ++r) put(r, (r + 2) % 3, next[(r + 2) % 3]);
  for (std::size_t r = 0; r < 3; ++r) {
    p.sync(TaskId(static_cast<std::int64_t>(r)), compute(r, r, a[r], WriteMode::Init));
  }
  for (std::size_t r = 0; r < 3; ++r) {
    const TaskId task = compute(r, (r + 1) % 3, next[r], WriteMode::Add);
    p.sync(TaskId(static_cast<std::int64_t>(6 + (r + 1) % 3)), task);
    p.plan.syncs.back().fence = Fence::PerDestination;
  }
  for (std::size_t r = 0; r < 3; ++r) {
    const TaskId task = compute(r, (r + 2) % 3, after[r], WriteMode::Add);
    p.sync(TaskId(static_cast<std::int64_t>(3 + (r + 2) % 3)), task);
    p.plan.syncs.back().fence = Fence::PerDestination;
  }
  for (std::size_t r = 0; r < 3; ++r) {
    p.task(static_cast<std::int64_t>(r), QueueKind::Sm, TaskKind::Finalise,
           {p.read(acc[r], own[r])}, {p.ref(c[r], WriteMode::Set, own[r])});
  }
  for (std::int64_t r = 0; r < 3; ++r) {
    const TaskId exit = p.exit(r);
    p.sync(TaskId(18 + r), exit);
    p.sync(TaskId(6 + r), exit);
  }
}

SplitDecode::SplitDecode() : hand(attention(16, 64, "") + std::string(kSplitDecode)) {
  HandPlan& p = hand;
  q = p.slots("Q.home", "Q", Level::Home, DType::BF16, "*");
  k = p.slots("K.home", "K", Level::Home, DType::BF16, ".*");
  v = p.slots("V.home", "V", Level::Home, DType::BF16, ".*");
  o = p.slots("O.home", "O", Level::Home, DType::BF16, ".");
  l = p.slots("L.home", "L", Level::Home, DType::F32, ".");
  acc_o = p.slots("fwd.O.acc0", "O", Level::Acc, DType::F32, "*");
  acc_l = p.slots("fwd.L.acc0", "L", Level::Acc, DType::F32, "*");
  in_o = p.slots("fwd.O.in0", "O", Level::Inbox, DType::F32, ".");
  in_l = p.slots("fwd.L.in0", "L", Level::Inbox, DType::F32, ".");
  for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
  const std::string own[] = {"0", "1"};
  for (std::size_t r = 0; r < 2; ++r) {
    p.compute(static_cast<std::int64_t>(r), "* " + own[r],
              {p.read(q[r], "*"), p.read(k[r], own[r] + " *"), p.read(v[r], own[r] + " *")},
              {p.ref(acc_o[r], WriteMode::Init, "*"), p.ref(acc_l[r], WriteMode::Init, "*")});
  }
  for (std::size_t r = 0; r < 2; ++r) {
    const TaskId id =
        p.copy(static_cast<std::int64_t>(r), p.read(acc_o[r], own[1 - r]), in_o[1 - r]);
    p.at(id).reads.push_back(p.read(acc_l[r], own[1 - r]));
    p.at(id).writes.push_back(p.ref(in_l[1 - r], WriteMode::Set, own[1 - r]));
    p.at(id).bytes = 16 * 16 * 4 + 16 * 4;  // f32: o and l of one head
  }
  for (std::size_t r = 0; r < 2; ++r) {
    std::vector<Ref> sources;
    for (std::size_t from = 0; from < 2; ++from) {
      sources.push_back(p.read(from == r ? acc_o[r] : in_o[r], own[r]));
      sources.push_back(p.read(from == r ? acc_l[r] : in_l[r], own[r]));
    }
    p.task(static_cast<std::int64_t>(r), QueueKind::Sm, TaskKind::Finalise, sources,
           {p.ref(o[r], WriteMode::Set, own[r]), p.ref(l[r], WriteMode::Set, own[r])});
  }
  for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
  const std::pair<int, int> edges[] = {{0, 2}, {1, 3}, {2, 4}, {1, 4}, {3, 5}, {0, 5},
                                       {5, 6}, {4, 7}, {6, 8}, {7, 9}, {4, 8}, {5, 9}};
  for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
}

Gather::Gather() : hand(kShare) {
  HandPlan& p = hand;
  x = p.slots("x.home", "x", Level::Home, DType::F32, ".");
  y = p.slots("y.home", "y", Level::Home, DType::F32, "*");
  stage = p.slots("move.x.st0.0", "x", Level::Stage, DType::F32, "*");
  for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
  for (std::size_t r = 0; r < 2; ++r) {
    const TaskId id =
        p.task(static_cast<std::int64_t>(r), QueueKind::Nccl, TaskKind::Collective,
               {p.read(x[0], "0"), p.read(x[1], "1")},
               {p.ref(stage[r], WriteMode::Set, "0"), p.ref(stage[r], WriteMode::Set, "1")});
    p.at(id).group = 0;
    p.at(id).bytes = 32 * 4;  // f32: half of x
  }
  for (std::size_t r = 0; r < 2; ++r) {
    p.compute(static_cast<std::int64_t>(r), "*", {p.read(stage[r], "*")},
              {p.ref(y[r], WriteMode::Set, "*")});
  }
  for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
  const std::pair<int, int> edges[] = {{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 7}};
  for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
}

Reduce::Reduce() : hand(std::string(kGemm) + std::string(kScatter)) {
  HandPlan& p = hand;
  a = p.slots("A.home", "A", Level::Home, DType::BF16, ".");
  b = p.slots("B.home", "B", Level::Home, DType::BF16, ".*");
  c = p.slots("C.home", "C", Level::Home, DType::BF16, ".");
  acc = p.slots("mm.C.acc0", "C", Level::Acc, DType::F32, "*");
  sum = p.slots("mm.C.sum", "C", Level::Sum, DType::F32, ".");
  for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
  const std::string own[] = {"0", "1"};
  for (std::size_t r = 0; r < 2; ++r) {
    p.compute(static_cast<std::int64_t>(r), "* " + own[r],
              {p.read(a[r], own[r]), p.read(b[r], own[r] + " *")},
              {p.ref(acc[r], WriteMode::Init, "*")});
  }
  for (std::size_t r = 0; r < 2; ++r) {
    const TaskId id = p.task(static_cast<std::int64_t>(r), QueueKind::Nccl, TaskKind::Collective,
                             {p.read(acc[0], own[r]), p.read(acc[1], own[r])},
                             {p.ref(sum[r], WriteMode::Init, own[r])});
    p.at(id).group = 0;
    p.at(id).nest = "mm";
    p.at(id).collective = CollectiveOp::ReduceScatter;
    p.at(id).wire = DType::BF16;
    p.at(id).bytes = kPartBytes;
  }
  for (std::size_t r = 0; r < 2; ++r) {
    p.task(static_cast<std::int64_t>(r), QueueKind::Sm, TaskKind::Finalise,
           {p.read(sum[r], own[r])}, {p.ref(c[r], WriteMode::Set, own[r])});
  }
  for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
  const std::pair<int, int> edges[] = {{0, 2}, {1, 3}, {2, 4}, {3, 5},
                                       {4, 6}, {5, 7}, {6, 8}, {7, 9}};
  for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
}

Open::Open() : hand(std::string(kGemm) + std::string(kOpen)) {
  HandPlan& p = hand;
  a = p.slots("A.home", "A", Level::Home, DType::BF16, ".");
  b = p.slots("B.home", "B", Level::Home, DType::BF16, ".*");
  c = p.slots("C.home", "C", Level::Home, DType::BF16, "*");
  acc = p.slots("mm.C.acc0", "C", Level::Acc, DType::F32, "*");
  for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
  const std::string own[] = {"0", "1"};
  for (std::size_t r = 0; r < 2; ++r) {
    p.compute(static_cast<std::int64_t>(r), "* " + own[r],
              {p.read(a[r], own[r]), p.read(b[r], own[r] + " *")},
              {p.ref(acc[r], WriteMode::Init, "*")});
  }
  for (std::size_t r = 0; r < 2; ++r) {
    p.task(static_cast<std::int64_t>(r), QueueKind::Sm, TaskKind::Finalise, {p.read(acc[r], "*")},
           {p.ref(c[r], WriteMode::Set, "*")});
  }
  for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
  const std::pair<int, int> edges[] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}};
  for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
}

Masked::Masked() : hand(attention(32, 16, " where causal(Sq, Skv)") + std::string(kMasked)) {
  HandPlan& p = hand;
  q = p.slot(0, "Q.home", "Q", Level::Home, DType::BF16, "*");
  k = p.slot(0, "K.home", "K", Level::Home, DType::BF16, "");
  v = p.slot(0, "V.home", "V", Level::Home, DType::BF16, "");
  o = p.slot(0, "O.home", "O", Level::Home, DType::BF16, "*");
  l = p.slot(0, "L.home", "L", Level::Home, DType::F32, "*");
  acc_o = p.slot(0, "fwd.O.acc0", "O", Level::Acc, DType::F32, "*");
  acc_l = p.slot(0, "fwd.L.acc0", "L", Level::Acc, DType::F32, "*");
  p.entry(0);
  p.compute(0, "1", {p.read(q, "1"), p.read(k, ""), p.read(v, "")},
            {p.ref(acc_o, WriteMode::Init, "1"), p.ref(acc_l, WriteMode::Init, "1")});
  p.task(0, QueueKind::Sm, TaskKind::Finalise, {p.read(acc_o, "1"), p.read(acc_l, "1")},
         {p.ref(o, WriteMode::Set, "1"), p.ref(l, WriteMode::Set, "1")});
  p.task(0, QueueKind::Sm, TaskKind::Init, {},
         {p.ref(o, WriteMode::Set, "0"), p.ref(l, WriteMode::Set, "0")});
  p.exit(0);
  p.sync(TaskId(0), TaskId(1));
  p.sync(TaskId(3), TaskId(4));
}

Chain::Chain() : hand(kChain) {
  HandPlan& p = hand;
  a = p.slot(0, "a.home", "a", Level::Home, DType::BF16, "*");
  b = p.slot(0, "b.home", "b", Level::Home, DType::BF16, "");
  t = p.slot(0, "t.home", "t", Level::Home, DType::BF16, "*");
  z = p.slot(0, "z.home", "z", Level::Home, DType::BF16, "*");
  acc = p.slot(0, "mm.t.acc0", "t", Level::Acc, DType::F32, "*");
  p.entry(0);
  p.compute(0, "*", {p.read(a, "*"), p.read(b, "")}, {p.ref(acc, WriteMode::Init, "*")});
  p.task(0, QueueKind::Sm, TaskKind::Finalise, {p.read(acc, "*")}, {p.ref(t, WriteMode::Set, "*")});
  const TaskId move = p.task(0, QueueKind::Sm, TaskKind::Compute, {p.read(t, "*")},
                             {p.ref(z, WriteMode::Set, "*")});
  p.at(move).nest = "mv";
  p.at(move).iter = {p.box({"M", "N"}, "*")};
  p.exit(0);
  p.sync(TaskId(0), TaskId(1));
  p.sync(TaskId(3), TaskId(4));
}

Twice::Twice() : hand(kTwice) {
  HandPlan& p = hand;
  x = p.slot(0, "x.home", "x", Level::Home, DType::F32, "");
  y = p.slot(0, "y.home", "y", Level::Home, DType::F32, "");
  t = p.slot(0, "t.home", "t", Level::Home, DType::F32, "");
  z = p.slot(0, "z.home", "z", Level::Home, DType::F32, "");
  old = p.slot(0, "t.old", "t", Level::Stage, DType::F32, "");
  p.entry(0);
  p.compute(0, "", {p.read(x, "")}, {p.ref(t, WriteMode::Set, "")});
  const TaskId keep =
      p.task(0, QueueKind::Sm, TaskKind::Copy, {p.read(t, "")}, {p.ref(old, WriteMode::Set, "")});
  p.at(keep).via = Via::Sm;
  p.at(p.compute(0, "", {p.read(y, "")}, {p.ref(t, WriteMode::Set, "")})).nest = "second";
  p.at(p.compute(0, "", {p.read(t, "")}, {p.ref(z, WriteMode::Set, "")})).nest = "third";
  p.exit(0);
  p.sync(TaskId(0), TaskId(1));
  p.sync(TaskId(4), TaskId(5));
}

std::string finding(const Plan& plan) {
  const Checked<Certificate> result = verify(plan);
  return result.ok() ? "verified" : render(result.error());
}

}  // namespace harpe::test
