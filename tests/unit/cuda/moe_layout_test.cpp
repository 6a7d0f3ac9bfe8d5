#include "measure/baselines/moe_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "exec/cpu/run_action.h"

namespace harpe::library {
namespace {

using Floats = std::vector<float>;

constexpr MoeSizes kSizes{.ranks = 3,
                          .tokens = 10,
                          .experts = 4,
                          .choices = 2,
                          .hidden = 16,
                          .inter = 8,
                          .dtype = DType::F32};

Floats drawn(std::int64_t count, const std::string& name) {
  const HostTensor tensor = random_tensor(DType::F32, {count}, 7, name);
  Floats values(static_cast<std::size_t>(count));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// One layer's inputs. Few tokens choose a rank's last two experts, or none.
struct Layer {
  Floats x = drawn(kSizes.ranks * kSizes.tokens * kSizes.hidden, "x");
  Floats router = drawn(kSizes.ranks * kSizes.tokens * kSizes.all_experts(), "router");
  Floats w1 = drawn(kSizes.all_experts() * kSizes.hidden * kSizes.inter, "w1");
  Floats w3 = drawn(kSizes.all_experts() * kSizes.hidden * kSizes.inter, "w3");
  Floats w2 = drawn(kSizes.all_experts() * kSizes.hidden * kSizes.inter, "w2");

  Layer() {
    for (std::size_t i = 0; i < router.size(); ++i) {
      const std::size_t expert = i % kSizes.all_experts();
      if (expert % 4 == 2) router[i] -= 1;
      if (expert % 4 == 3) router[i] -= 9;
    }
  }

  [[nodiscard]] HostTensor logits() const {
    HostTensor tensor =
        make_tensor(DType::F32, {kSizes.ranks * kSizes.tokens, kSizes.all_experts()});
    std::memcpy(tensor.data.data(), router.data(), tensor.data.size());
    return tensor;
  }

  // The result of a row through an expert.
  [[nodiscard]] Floats through(const float* row, std::int64_t expert) const {
    const std::int64_t h = kSizes.hidden;
    const std::int64_t f = kSizes.inter;
    Floats made(static_cast<std::size_t>(h), 0);
    for (std::int64_t i = 0; i < f; ++i) {
      double gate = 0;
      double up = 0;
      for (std::int64_t j = 0; j < h; ++j) {
        const auto at = static_cast<std::size_t>((expert * h + j) * f + i);
        gate += row[j] * w1[at];
        up += row[j] * w3[at];
      }
      const double act = gate / (1 + std::exp(-gate)) * up;
      for (std::int64_t j = 0; j < h; ++j) {
        made[static_cast<std::size_t>(j)] +=
            static_cast<float>(act * w2[static_cast<std::size_t>((expert * f + i) * h + j)]);
      }
    }
    return made;
  }

  [[nodiscard]] Floats result() const {
    Floats y(x.size(), 0);
    for (std::int64_t token = 0; token < kSizes.ranks * kSizes.tokens; ++token) {
      const float* const logits = router.data() + token * kSizes.all_experts();
      std::vector<std::int64_t> order;
      for (std::int64_t expert = 0; expert < kSizes.all_experts(); ++expert) {
        order.push_back(expert);
      }
      std::ranges::stable_sort(
          order, [&](std::int64_t a, std::int64_t b) { return logits[a] > logits[b]; });
      double sum = 0;
      for (std::int64_t i = 0; i < kSizes.choices; ++i) sum += std::exp(logits[order[i]]);
      for (std::int64_t i = 0; i < kSizes.choices; ++i) {
        const Floats made = through(x.data() + token * kSizes.hidden, order[i]);
        const double weight = std::exp(logits[order[i]]) / sum;
        for (std::int64_t j = 0; j < kSizes.hidden; ++j) {
          y[static_cast<std::size_t>(token * kSizes.hidden + j)] +=
              static_cast<float>(weight * made[static_cast<std::size_t>(j)]);
        }
      }
    }
    return y;
  }
};

// One rank on the host, with separate memory for every buffer.
struct HostRank {
  MoeLayout layout;
  MoePlaces at;
  std::vector<std::vector<std::byte>> held;

  HostRank(const Layer& layer, const MoeLayout& of, int rank) : layout(of) {
    const std::int64_t row = kSizes.row_bytes();
    const std::int64_t came = layout.received_rows();
    const std::int64_t choices = kSizes.tokens * kSizes.choices;
    at.x = copy_of(layer.x.data() + rank * kSizes.tokens * kSizes.hidden, kSizes.tokens * row);
    at.router = copy_of(layer.router.data() + rank * kSizes.tokens * kSizes.all_experts(),
                        kSizes.tokens * kSizes.all_experts() * 4);
    at.index = reserve(choices * 4);
    at.weight = reserve(choices * 4);
    at.sent = reserve(choices * row);
    at.returned = reserve(choices * row);
    at.grouped = reserve(came * row);
    at.made = reserve(came * row);
    at.gates = reserve(came * 2 * kSizes.inter * 4);
    at.act = reserve(came * kSizes.inter * 4);
    at.y = reserve(kSizes.tokens * row);
    at.received = at.grouped;
    at.leaving = at.made;
    if (!layout.experts_of_rows.empty()) {
      at.received = reserve(came * row);
      at.leaving = reserve(came * row);
      at.experts_of_rows = copy_of(layout.experts_of_rows.data(), came * 4);
      at.ranks_of_rows = copy_of(layout.ranks_of_rows.data(), came * 4);
    }
    const std::int64_t buckets = kSizes.all_experts() + kSizes.ranks;
    at.used = reinterpret_cast<std::int32_t*>(reserve(buckets * 4));
    at.counts = reinterpret_cast<std::int32_t*>(reserve(buckets * 4));
  }

  std::byte* reserve(std::int64_t bytes) {
    return held.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xff}).data();
  }
  std::byte* copy_of(const void* from, std::int64_t bytes) {
    std::byte* const to = reserve(bytes);
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return to;
  }

  void multiply(const Layer& layer, int rank) const {
    const std::int64_t h = kSizes.hidden;
    const std::int64_t f = kSizes.inter;
    for (std::int64_t own = 0; own < kSizes.experts; ++own) {
      const std::int64_t expert = rank * kSizes.experts + own;
      for (std::int64_t r = layout.grouped[own]; r < layout.grouped[own + 1]; ++r) {
        const float* const row = reinterpret_cast<const float*>(at.grouped) + r * h;
        float* const gates = reinterpret_cast<float*>(at.gates) + r * 2 * f;
        for (std::int64_t i = 0; i < f; ++i) {
          gates[i] = gates[f + i] = 0;
          for (std::int64_t j = 0; j < h; ++j) {
            gates[i] += row[j] * layer.w1[(expert * h + j) * f + i];
            gates[f + i] += row[j] * layer.w3[(expert * h + j) * f + i];
          }
        }
      }
    }
    actions::TaskWork gate;
    gate.actions.emplace_back(gate_action(kSizes, layout, at));
    cpu::run(gate);
    for (std::int64_t own = 0; own < kSizes.experts; ++own) {
      const std::int64_t expert = rank * kSizes.experts + own;
      for (std::int64_t r = layout.grouped[own]; r < layout.grouped[own + 1]; ++r) {
        const float* const act = reinterpret_cast<const float*>(at.act) + r * f;
        float* const made = reinterpret_cast<float*>(at.made) + r * h;
        for (std::int64_t j = 0; j < h; ++j) {
          made[j] = 0;
          for (std::int64_t i = 0; i < f; ++i)
            made[j] += act[i] * layer.w2[(expert * f + i) * h + j];
        }
      }
    }
  }
};

std::vector<RowMessage> between(const std::vector<RowMessage>& messages, int peer) {
  std::vector<RowMessage> found;
  std::ranges::copy_if(messages, std::back_inserter(found),
                       [&](const RowMessage& message) { return message.peer == peer; });
  return found;
}

// Matches messages in order, as NCCL does; `back` follows the way of those that arrived.
void deliver(const std::vector<HostRank>& ranks, bool back) {
  const std::int64_t row = kSizes.row_bytes();
  for (int from = 0; from < kSizes.ranks; ++from) {
    for (int to = 0; to < kSizes.ranks; ++to) {
      const HostRank& source = ranks[static_cast<std::size_t>(from)];
      const HostRank& target = ranks[static_cast<std::size_t>(to)];
      const auto sends = between(back ? source.layout.receives : source.layout.sends, to);
      const auto receives = between(back ? target.layout.sends : target.layout.receives, from);
      ASSERT_EQ(sends.size(), receives.size());
      for (std::size_t i = 0; i < sends.size(); ++i) {
        ASSERT_EQ(sends[i].rows, receives[i].rows);
        std::memcpy((back ? target.at.returned : target.at.received) + receives[i].first * row,
                    (back ? source.at.leaving : source.at.sent) + sends[i].first * row,
                    static_cast<std::size_t>(sends[i].rows * row));
      }
    }
  }
}

class MoeBaseline : public testing::TestWithParam<MoeMessages> {};

TEST_P(MoeBaseline, makes_what_the_layer_means) {
  const Layer layer;
  const MoeCounts counts = count_choices(kSizes, layer.logits());
  std::vector<HostRank> ranks;
  for (int rank = 0; rank < kSizes.ranks; ++rank) {
    const MoeLayout layout = layout_of(kSizes, counts, rank, GetParam());
    ASSERT_EQ(layout.sent_rows(), kSizes.tokens * kSizes.choices);
    ranks.emplace_back(layer, layout, rank);
  }
  for (const HostRank& rank : ranks) {
    cpu::run_action(choose_action(kSizes, rank.at));
    cpu::run_action(send_action(kSizes, rank.layout, rank.at));
  }
  deliver(ranks, false);
  for (int rank = 0; rank < kSizes.ranks; ++rank) {
    const HostRank& one = ranks[static_cast<std::size_t>(rank)];
    const bool sorts = !one.layout.experts_of_rows.empty();
    EXPECT_EQ(sorts, GetParam() == MoeMessages::OfRanks);
    if (sorts) cpu::run_action(group_action(kSizes, one.layout, one.at));
    one.multiply(layer, rank);
    if (sorts) cpu::run_action(ungroup_action(kSizes, one.layout, one.at));
  }
  deliver(ranks, true);
  const Floats wanted = layer.result();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    cpu::run_action(combine_action(kSizes, ranks[rank].layout, ranks[rank].at));
    const auto* const y = reinterpret_cast<const float*>(ranks[rank].at.y);
    const std::size_t count = static_cast<std::size_t>(kSizes.tokens * kSizes.hidden);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(y[i], wanted[rank * count + i], 1e-4) << "rank " << rank << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Messages, MoeBaseline,
                         testing::Values(MoeMessages::OfRanks, MoeMessages::OfExperts));

TEST(MoeLayout, has_no_message_without_rows) {
  const MoeSizes sizes{.ranks = 2, .tokens = 2, .experts = 2, .choices = 1, .hidden = 8};
  const MoeCounts counts = {{2, 0, 0, 0}, {0, 1, 0, 1}};
  const MoeLayout first = layout_of(sizes, counts, 0, MoeMessages::OfExperts);
  EXPECT_EQ(first.sends, (std::vector<RowMessage>{{0, 0, 2}}));
  EXPECT_EQ(first.receives, (std::vector<RowMessage>{{0, 0, 2}, {1, 2, 1}}));
  EXPECT_EQ(first.grouped, (std::vector<std::int64_t>{0, 2, 3}));
  const MoeLayout second = layout_of(sizes, counts, 1, MoeMessages::OfRanks);
  EXPECT_EQ(second.sends, (std::vector<RowMessage>{{0, 0, 1}, {1, 1, 1}}));
  EXPECT_EQ(second.receives, (std::vector<RowMessage>{{1, 0, 1}}));
  EXPECT_EQ(second.experts_of_rows, std::vector<std::int32_t>{1});
  EXPECT_EQ(second.ranks_of_rows, std::vector<std::int32_t>{1});
}

TEST(MoeLayout, counts_ties_for_the_lower_expert) {
  const MoeSizes sizes{.ranks = 1, .tokens = 2, .experts = 4, .choices = 2, .hidden = 8};
  HostTensor logits = make_tensor(DType::F32, {2, 4});
  for (const int expert : {1, 2, 3}) store(logits, expert, 1);
  store(logits, 4 + 3, -1);
  EXPECT_EQ(count_choices(sizes, logits), (MoeCounts{{1, 2, 1, 0}}));
}

}  // namespace
}  // namespace harpe::library
