#include "transport/ordering.h"

#include <array>

namespace harpe::transport {
namespace {

constexpr std::array kOrderings = {"in-order writes", "nic fence", "immediate count", "epoch drain",
                                   "per-operation drain"};

Diag lacking(Policy policy, const std::string& needed, const std::string& provider) {
  return make_diag(DiagCode::N003,
                   {{"policy", print_policy(policy)}, {"needed", needed}, {"provider", provider}});
}

// The provider's own ordering, if it has one.
std::optional<Ordering> provided(const Guarantees& given) {
  if (given.in_order) return Ordering::InOrder;
  if (given.fence) return Ordering::NicFence;
  return std::nullopt;
}

Fence resolve(const Guarantees& given, bool may_hold) {
  if (provided(given)) return may_hold ? Fence::Batched : Fence::NicOrdered;
  if (given.immediate) return Fence::Immediate;
  return may_hold ? Fence::OneQuiet : Fence::PerPut;
}

}  // namespace

Checked<Strategy> choose(Policy policy, const Guarantees& given, bool may_hold,
                         const std::string& provider) {
  if (!policy) {
    if (!provided(given) && !given.remote_completion) {
      return lacking(policy, "in-order writes, a fence or remote completion", provider);
    }
    if (!provided(given) && given.immediate && given.remote_completion && may_hold) {
      // Weak signals travel with their puts; strong ones, which cover more puts, share a quiet.
      return Strategy{
          .ordering = Ordering::Immediate, .hold = Hold::Epoch, .quiet_all_ranks = true};
    }
    HP_TRY(Strategy chosen, choose(resolve(given, may_hold), given, may_hold, provider));
    // Automatic choice: a quiet need not wait for ranks that the signal does not go to.
    if (chosen.ordering == Ordering::OperationQuiet) chosen.quiet_all_ranks = false;
    return chosen;
  }
  Strategy strategy{.in_order = given.in_order};
  if (policy == Fence::NicOrdered || policy == Fence::Batched) {
    const auto ordering = provided(given);
    if (!ordering) return lacking(policy, "in-order writes or a fence in the NIC", provider);
    strategy.ordering = *ordering;
    strategy.hold = policy == Fence::Batched ? Hold::Group : Hold::None;
    return strategy;
  }
  if (policy == Fence::Immediate) {
    if (!given.immediate) return lacking(policy, "data that travels with a put", provider);
    strategy.ordering = Ordering::Immediate;
    // A strong signal also covers puts that it does not travel with.
    if (!given.in_order && !given.remote_completion) {
      return lacking(policy, "in-order writes or remote completion", provider);
    }
    return strategy;
  }
  if (!given.remote_completion) return lacking(policy, "remote completion of puts", provider);
  if (policy == Fence::OneQuiet) {
    strategy.ordering = Ordering::EpochQuiet;
    strategy.hold = Hold::Epoch;
    strategy.quiet_all_ranks = true;
    return strategy;
  }
  strategy.ordering = Ordering::OperationQuiet;
  strategy.hold = policy == Fence::PerDestination ? Hold::Group : Hold::None;
  strategy.quiet_all_ranks = policy == Fence::PerPut;
  return strategy;
}

std::string_view print(Ordering ordering) { return kOrderings[static_cast<std::size_t>(ordering)]; }
std::string_view print_policy(Policy policy) { return policy ? print(*policy) : "auto"; }

std::string describe(const Guarantees& given) {
  std::string text;
  const auto add = [&](bool is_there, const std::string& what) {
    if (is_there) text += (text.empty() ? "" : ", ") + what;
  };
  add(given.in_order, "in-order writes");
  add(given.fence, "fence");
  add(given.immediate, "immediate data (" + std::to_string(given.immediate_bytes) + " bytes)");
  add(given.remote_completion, "remote completion");
  add(given.counts, "counting signals");
  add(given.target_progress, "progress by the target");
  return text.empty() ? "nothing" : text;
}

}  // namespace harpe::transport
