#include "exec/cuda/kernels/gemm/device/part_ticket.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>
#include <vector>

namespace harpe::device {
namespace {

constexpr int kParts = 4;

// What a part does next, as take_shares of gemm_parts.cuh does it: each step is one access to the
// ticket.
enum class Step : std::uint8_t { Arrive, Wait, Subtract, Reset, Done };

struct Part {
  Step step = Step::Arrive;
  PartTicket seen;
  bool is_last = false;
  std::uint32_t shares = 0;
};

struct State {
  std::uint32_t word = 0;
  std::array<Part, kParts> parts;

  [[nodiscard]] std::vector<std::uint32_t> key() const {
    std::vector<std::uint32_t> key = {word};
    for (const Part& part : parts) {
      key.push_back(static_cast<std::uint32_t>(part.step) * 2 + (part.is_last ? 1 : 0));
      key.push_back(part.seen.word);
      key.push_back(part.shares);
    }
    return key;
  }
};

// Visits every order of the steps of all parts.
class Explorer {
 public:
  // `waits`: a bit for each part that waits for the others. `is_mutant`: parts leave without
  // finding out whether others have arrived meanwhile.
  Explorer(std::uint32_t waits, bool is_mutant) : waits_(waits), is_mutant_(is_mutant) {}

  // Whether each share is taken once and the ticket is empty in all orders.
  bool is_right() {
    visit(State{});
    return is_right_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  void visit(const State& state) {
    if (!seen_.insert(state.key()).second) return;
    bool is_over = true;
    for (int part = 0; part < kParts; ++part) {
      if (state.parts[part].step == Step::Done) continue;
      is_over = false;
      for (const bool leaves : {false, true}) {
        State next = state;
        if (take_step(next, part, leaves)) visit(next);
      }
    }
    if (is_over) check(state);
  }

  // False: `leaves` makes no difference to this step.
  bool take_step(State& state, int index, bool leaves) const {
    Part& part = state.parts[index];
    if (leaves && part.step != Step::Wait) return false;
    const bool waits = (waits_ >> index & 1) != 0;
    switch (part.step) {
      case Step::Arrive:
        state.word += PartTicket::arrival(index, waits, false);
        part.seen.word = state.word;
        part.is_last = part.seen.arrived() == kParts;
        part.step = waits ? Step::Wait : part.is_last ? Step::Subtract : Step::Done;
        break;
      case Step::Wait:
        wait(state, index, leaves);
        break;
      case Step::Subtract: {
        part.shares = part.seen.shares_of(index, part.is_last);
        if (waits) state.word -= PartTicket::kWaiting;
        const PartTicket left = waits ? PartTicket{state.word} : part.seen;
        part.step = left.waiting() == 0 ? Step::Reset : Step::Done;
        break;
      }
      case Step::Reset:
        state.word = 0;
        part.step = Step::Done;
        break;
      case Step::Done:
        break;
    }
    return true;
  }

  void wait(State& state, int index, bool leaves) const {
    Part& part = state.parts[index];
    if (part.seen.arrived() == kParts) {
      part.step = Step::Subtract;
    } else if (!leaves || (state.word != part.seen.word && !is_mutant_)) {
      part.seen.word = state.word;
    } else {
      state.word = PartTicket{state.word}.without(index).word;
      part.step = Step::Done;
    }
  }

  void check(const State& state) {
    std::uint32_t taken = 0;
    for (const Part& part : state.parts) {
      is_right_ = is_right_ && (taken & part.shares) == 0;
      taken |= part.shares;
    }
    is_right_ = is_right_ && taken == (1U << kParts) - 1 && state.word == 0;
  }

  std::uint32_t waits_;
  bool is_mutant_;
  bool is_right_ = true;
  std::set<std::vector<std::uint32_t>> seen_;
};

TEST(PartTicket, every_order_takes_each_share_once_and_empties_the_ticket) {
  for (std::uint32_t waits = 0; waits < 1U << kParts; ++waits) {
    Explorer orders(waits, false);
    EXPECT_TRUE(orders.is_right()) << waits;
    EXPECT_GE(orders.states(), 16U) << waits;
  }
}

TEST(PartTicket, a_part_that_leaves_unseen_is_found) {
  int found = 0;
  for (std::uint32_t waits = 0; waits < 1U << kParts; ++waits) {
    Explorer orders(waits, true);
    found += orders.is_right() ? 0 : 1;
  }
  EXPECT_EQ(found, (1 << kParts) - 1);  // all but the case in which nobody waits
}

TEST(PartTicket, holds_the_most_parts) {
  PartTicket ticket;
  for (int part = 0; part < PartTicket::kMostParts; ++part) {
    ticket.word += PartTicket::arrival(part, part % 2 == 0, part % 3 == 0);
  }
  EXPECT_EQ(ticket.arrived(), 12);
  EXPECT_TRUE(ticket.is_poisoned());
  EXPECT_EQ(ticket.waiting(), 6);
  EXPECT_EQ(ticket.shares_of(0, true), 0b1010'1010'1011U);
  EXPECT_EQ(ticket.without(0).waiting(), 5);
  EXPECT_EQ(ticket.without(0).shares_of(11, true), 0b1010'1010'1011U);
  EXPECT_EQ(std::popcount(ticket.shares_of(11, false)), 1);
}

}  // namespace
}  // namespace harpe::device
