// Ring attention on four ranks, here threads, each with a part of the sequence in its own tensors.
// Keys and values travel round the ring; each rank compares its part with a plain softmax.
#include <harpe/harpe.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kTokens = 128, kHeads = 2, kWidth = 16, kOwn = kTokens / kRanks;

// A number for each element of a tensor [1, kTokens, kHeads, kWidth].
double element(int tensor, std::int64_t token, std::int64_t head, std::int64_t column) {
  const std::int64_t place = (token * kHeads + head) * kWidth + column;
  return static_cast<float>(std::sin(0.37 * static_cast<double>(place) + tensor));
}

// Calls visit(token, head, column) for each element of a rank's part, in memory order.
template <class Visit>
void for_each_element(int rank, const Visit& visit) {
  for (std::int64_t token = rank * kOwn; token < (rank + 1) * kOwn; ++token) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t column = 0; column < kWidth; ++column) visit(token, head, column);
    }
  }
}

std::vector<float> make_part(int tensor, int rank) {
  std::vector<float> part;
  for_each_element(rank, [&](std::int64_t token, std::int64_t head, std::int64_t column) {
    part.push_back(static_cast<float>(element(tensor, token, head, column)));
  });
  return part;
}

// One element of causal attention, straight from its definition.
double attend(std::int64_t query, std::int64_t head, std::int64_t column) {
  double weights = 0, weighted = 0;
  for (std::int64_t key = 0; key <= query; ++key) {
    double score = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      score += element(0, query, head, i) * element(1, key, head, i);
    }
    const double weight = std::exp(score / std::sqrt(double{kWidth}));
    weights += weight;
    weighted += weight * element(2, key, head, column);
  }
  return weighted / weights;
}

double largest_error(const std::vector<float>& part, int rank) {
  double largest = 0;
  auto found = part.begin();
  for_each_element(rank, [&](std::int64_t token, std::int64_t head, std::int64_t column) {
    largest = std::max(largest, std::abs(attend(token, head, column) - *found++));
  });
  return largest;
}

bool run_rank(const harpe::Plan& plan, const std::shared_ptr<harpe::Exchange>& exchange) {
  using harpe::dense, harpe::DType;
  const auto fail = [](const harpe::Error& error) { return std::puts(error.text.c_str()), false; };
  const auto group = harpe::Group::join({.exchange = exchange});
  if (!group) return fail(group.error());
  const auto attention = harpe::Executable::make(*group, plan);
  if (!attention) return fail(attention.error());

  const int rank = group->rank();
  const std::vector<float> q = make_part(0, rank), k = make_part(1, rank), v = make_part(2, rank);
  std::vector<float> o(q.size()), lse(kHeads * kOwn);
  const auto view = [](auto& part) {
    return dense(part.data(), DType::F32, {1, kOwn, kHeads, kWidth});
  };
  const auto done =
      attention->launch(nullptr, {{"q", view(q)},
                                  {"k", view(k)},
                                  {"v", view(v)},
                                  {"o", view(o)},
                                  {"lse", dense(lse.data(), DType::F32, {1, kHeads, kOwn})}});
  if (!done) return fail(done.error());
  const double error = largest_error(o, rank);
  std::printf("rank %d: largest error %.1e, %lld bytes copied\n", rank, error,
              static_cast<long long>(attention->status().copied_bytes));
  return error < 1e-5;
}

}  // namespace

int main() {
  const auto plan = harpe::plan({.op = "attention",
                                 .parameters = {{"seq", kTokens},
                                                {"heads", kHeads},
                                                {"kv_heads", kHeads},
                                                {"head_dim", kWidth},
                                                {"causal", true},
                                                {"dtype", "f32"}},
                                 .mesh = "cp=4",
                                 .schedule = "ring"});
  if (!plan) return std::puts(plan.error().text.c_str()), 1;
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> ranks;
    for (const auto& exchange : harpe::local_exchanges(kRanks)) {
      ranks.emplace_back([&plan, &right, exchange] { right += run_rank(*plan, exchange); });
    }
  }
  return right == kRanks ? 0 : 1;
}
