#include "exec/cpu/run_action.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exec/actions/occupancy.h"
#include "exec/cpu/kernels/elementwise.h"

namespace harpe::cpu {
namespace {

using actions::ChooseExperts;
using actions::CombineRows;
using actions::element_at;
using actions::GatherRows;
using actions::LimitChoices;
using actions::Rows;
using actions::SlabWalk;
using actions::SlotRun;
using actions::TokenRun;
using actions::write_used;

std::int64_t read_index(const std::byte* data, DType dtype) {
  if (dtype == DType::I64) {
    std::int64_t value = 0;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  std::int32_t value = 0;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

void write_index(std::byte* data, DType dtype, std::int64_t value) {
  if (dtype == DType::I64) {
    std::memcpy(data, &value, sizeof(value));
    return;
  }
  const auto narrow = static_cast<std::int32_t>(value);
  std::memcpy(data, &narrow, sizeof(narrow));
}

double read_real(const std::byte* data, DType dtype) {
  double value = 0;
  convert(&value, DType::F64, data, dtype, 1);
  return value;
}

// Calls body(run, token, choice, place, slot) for every choice whose slot is in one of the walk's
// slot runs; `slot` counts from the first of `place`.
template <class Body>
void for_each_choice(const SlabWalk& walk, const Body& body) {
  const auto experts = std::ssize(walk.slots);
  std::fill_n(walk.counts, experts, 0);
  for (const TokenRun& run : walk.runs) {
    for (std::int64_t token = 0; token < run.tokens; ++token) {
      for (std::int64_t choice = 0; choice < walk.choices; ++choice) {
        const std::int64_t expert =
            read_index(run.index + token * run.index_stride + choice * run.choice_stride,
                       walk.index_dtype) -
            walk.first_expert;
        if (expert < 0 || expert >= experts) continue;
        const std::int64_t slot = walk.counts[expert]++;
        for (const SlotRun& place : walk.slots[static_cast<std::size_t>(expert)]) {
          if (slot < place.before || slot >= place.before + place.slots) continue;
          body(run, token, choice, place, slot - place.before);
        }
      }
    }
  }
}

}  // namespace

void run_action(const GatherRows& gather) {
  const Rows& features = gather.features;
  for_each_choice(gather.walk, [&](const TokenRun& run, std::int64_t token, std::int64_t,
                                   const SlotRun& place, std::int64_t slot) {
    std::byte* const to = place.data + slot * place.stride;
    const std::byte* const from = run.rows + token * run.row_stride;
    features.for_each([&](const auto& walk) {
      convert(element_at(to, walk.offset(0), place.dtype), place.dtype,
              element_at(from, walk.offset(1), run.row_dtype), run.row_dtype, features.length());
    });
  });
  for (std::size_t expert = 0; expert < gather.walk.slots.size(); ++expert) {
    for (const SlotRun& place : gather.walk.slots[expert]) {
      const std::int64_t used =
          std::clamp<std::int64_t>(gather.walk.counts[expert] - place.before, 0, place.slots);
      write_used(place.used, gather.pads ? place.slots : used);
      for (std::int64_t slot = used; gather.pads && slot < place.slots; ++slot) {
        features.for_each([&](const auto& walk) {
          fill(element_at(place.data + slot * place.stride, walk.offset(0), place.dtype),
               place.dtype, 0, features.length());
        });
      }
    }
  }
}

void run_action(const CombineRows& combine) {
  const Rows& features = combine.features;
  for (const TokenRun& run : combine.walk.runs) {
    if (run.accumulate || run.rows == nullptr) continue;
    for (std::int64_t token = 0; token < run.tokens; ++token) {
      features.for_each([&](const auto& walk) {
        fill(element_at(run.rows + token * run.row_stride, walk.offset(0), run.row_dtype),
             run.row_dtype, 0, features.length());
      });
    }
  }
  for_each_choice(combine.walk, [&](const TokenRun& run, std::int64_t token, std::int64_t choice,
                                    const SlotRun& place, std::int64_t slot) {
    if (run.rows == nullptr) return;
    const double weight =
        read_real(run.weights + token * run.weight_stride + choice * run.weight_choice_stride,
                  run.weight_dtype);
    features.for_each([&](const auto& walk) {
      add_scaled(element_at(run.rows + token * run.row_stride, walk.offset(0), run.row_dtype),
                 run.row_dtype, weight,
                 element_at(place.data + slot * place.stride, walk.offset(1), place.dtype),
                 place.dtype, features.length());
    });
  });
}

void run_action(const LimitChoices& limit) {
  std::fill_n(limit.taken.get(), limit.experts, 0);
  for (std::int64_t token = 0; token < limit.first + limit.tokens; ++token) {
    for (std::int64_t choice = 0; choice < limit.choices; ++choice) {
      const std::int64_t expert = read_index(
          limit.wanted + token * limit.wanted_stride + choice * limit.wanted_choice_stride,
          limit.wanted_dtype);
      const bool known = expert >= 0 && expert < limit.experts;
      const bool keeps = known && limit.taken[expert]++ < limit.capacity;
      if (token < limit.first) continue;
      write_index(limit.kept + (token - limit.first) * limit.kept_stride +
                      choice * limit.kept_choice_stride,
                  limit.kept_dtype, keeps ? expert : -1);
    }
  }
}

void run_action(const ChooseExperts& choose) {
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  for (std::int64_t token = 0; token < choose.tokens; ++token) {
    const std::byte* const logits = choose.logits + token * choose.logit_stride;
    const auto logit = [&](std::int64_t expert) {
      const double value = read_real(logits + expert * choose.expert_stride, choose.logit_dtype);
      return std::isnan(value) ? kLeast : value;
    };
    std::byte* const index = choose.index + token * choose.index_stride;
    // Each choice is the next in the order (logit descending, expert ascending).
    double largest = 0;
    double sum = 0;
    double last = std::numeric_limits<double>::infinity();
    std::int64_t previous = -1;
    for (std::int64_t choice = 0; choice < choose.choices; ++choice) {
      std::int64_t best = -1;
      double best_logit = kLeast;
      for (std::int64_t expert = 0; expert < choose.experts; ++expert) {
        const double value = logit(expert);
        const bool later = value < last || (value == last && expert > previous);
        if (later && (best < 0 || value > best_logit)) {
          best = expert;
          best_logit = value;
        }
      }
      if (choice == 0) largest = best_logit;
      sum += std::exp(best_logit - largest);
      last = best_logit;
      previous = best;
      write_index(index + choice * choose.index_choice_stride, choose.index_dtype, best);
    }
    std::byte* const weights = choose.weights + token * choose.weight_stride;
    for (std::int64_t choice = 0; choice < choose.choices; ++choice) {
      const std::int64_t expert =
          read_index(index + choice * choose.index_choice_stride, choose.index_dtype);
      const double weight = std::exp(logit(expert) - largest) / sum;
      convert(weights + choice * choose.weight_choice_stride, choose.weight_dtype, &weight,
              DType::F64, 1);
    }
  }
}

}  // namespace harpe::cpu
