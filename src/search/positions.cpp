#include "search/positions.h"

#include <algorithm>
#include <cmath>

namespace harpe {
namespace {

// Area of k <= q + shift over queries x keys.
double area_below(double shift, const Stretch& queries, const Stretch& keys) {
  const double height = keys.end - keys.begin;
  const auto integral = [&](double x) {
    if (x <= 0) return 0.0;
    return x < height ? x * x / 2 : height * height / 2 + height * (x - height);
  };
  return integral(queries.end + shift - keys.begin) - integral(queries.begin + shift - keys.begin);
}

}  // namespace

Positions::Positions(const Problem& problem, const Candidate& candidate,
                     const std::vector<CandidateLoop>& loops, int axis)
    : size_(static_cast<double>(problem.axes[static_cast<std::size_t>(axis)].size)) {
  for (int pass = 0; pass < 2; ++pass) {  // home digits first, as the form writer has them
    for (int part = 0; part < candidate.parts; ++part) {
      bool home = false;
      for (int g = 0; g < static_cast<int>(problem.groups.size()); ++g) {
        home = home || home_at(problem, candidate, part, g) == axis;
      }
      const CandidatePart& at = candidate.part[static_cast<std::size_t>(part)];
      if (home != (pass == 0) || (!home && at.par != axis)) continue;
      Digit digit{at.size, part, -1, at.par == axis};
      for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].part == part && loops[i].axis == axis) digit.loop = static_cast<int>(i);
      }
      digits_.push_back(digit);
      if (home) homes_ *= at.size;
      blocks_ *= at.size;
    }
  }
  zigzag_ = candidate.zigzag && homes_ > 1;
  if (zigzag_) blocks_ *= 2;
}

void Positions::stretches(const PartCoordinates& rank, const LoopTimes& time,
                          std::vector<Stretch>& out) const {
  out.clear();
  std::vector<std::int64_t> blocks;
  collect(rank, time, 0, 0, blocks);
  std::ranges::sort(blocks);
  const double unit = size_ / static_cast<double>(blocks_);
  for (const std::int64_t block : blocks) {
    const double begin = static_cast<double>(block) * unit;
    if (!out.empty() && std::abs(out.back().end - begin) < unit * 1e-6) {
      out.back().end = begin + unit;
    } else {
      out.push_back({begin, begin + unit});
    }
  }
}

void Positions::collect(const PartCoordinates& rank, const LoopTimes& time, std::size_t digit,
                        std::int64_t value, std::vector<std::int64_t>& out) const {
  if (digit == digits_.size()) {
    add_block(value, out);
    return;
  }
  const Digit& d = digits_[digit];
  const int own = rank[static_cast<std::size_t>(d.part)];
  if (d.parallel || d.loop >= 0) {
    const std::int64_t at =
        d.parallel ? own : (own + time[static_cast<std::size_t>(d.loop)]) % d.extent;
    collect(rank, time, digit + 1, value * d.extent + at, out);
    return;
  }
  for (std::int64_t v = 0; v < d.extent; ++v) {
    collect(rank, time, digit + 1, value * d.extent + v, out);
  }
}

// A zigzag's two halves lie mirrored; digits behind the homes lie inside each.
void Positions::add_block(std::int64_t value, std::vector<std::int64_t>& out) const {
  if (!zigzag_) {
    out.push_back(value);
    return;
  }
  const std::int64_t inner = blocks_ / 2 / homes_;
  const std::int64_t home = value / inner;
  out.push_back(home * inner + value % inner);
  out.push_back((2 * homes_ - 1 - home) * inner + value % inner);
}

double seen_pairs(const Visibility& visible, const std::vector<Stretch>& queries,
                  const std::vector<Stretch>& keys) {
  double seen = 0;
  double all = 0;
  const auto prefix = static_cast<double>(visible.prefix);
  for (const Stretch& q : queries) {
    for (const Stretch& k : keys) {
      all += (q.end - q.begin) * (k.end - k.begin);
      const double shown = std::clamp(prefix, k.begin, k.end);
      seen += (q.end - q.begin) * (shown - k.begin);
      const Stretch rest{shown, k.end};
      if (rest.end <= rest.begin) continue;
      seen += area_below(static_cast<double>(visible.high) + 0.5, q, rest);
      seen -= area_below(static_cast<double>(visible.low) - 0.5, q, rest);
    }
  }
  return all > 0 ? seen / all : 0;
}

}  // namespace harpe
