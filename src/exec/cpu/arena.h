#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/actions/view.h"
#include "plan/plan.h"

namespace harpe::cpu {

// The arenas of all ranks of a plan, in this process: one block of memory per rank, of equal size,
// so that a peer's address is its base plus an offset (commir.md D15).
class Arenas {
 public:
  explicit Arenas(const Plan& plan);

  [[nodiscard]] const actions::Bases& bases() const { return bases_; }
  [[nodiscard]] std::int64_t bytes_per_rank() const { return bytes_; }

  // Fills with 0xff, a NaN in every floating type, whatever no caller has put there: all slots, and
  // the homes that are not inputs. What a plan fails to write is then seen in its results.
  void poison(const Plan& plan) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::int64_t bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[], Free>> memory_;
  actions::Bases bases_;
};

// What Occupancy keeps, of all ranks of a plan.
class Numbers {
 public:
  Numbers(const Plan& plan, std::int64_t bytes_per_rank);

  [[nodiscard]] const std::vector<std::byte*>& of_ranks() const { return of_ranks_; }
  void clear() const;

 private:
  std::int64_t count_;
  std::unique_ptr<std::int32_t[]> memory_;
  std::vector<std::byte*> of_ranks_;
};

}  // namespace harpe::cpu
