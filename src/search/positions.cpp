#include "search/positions.h"

#include <algorithm>
#include <cmath>

namespace harpe {
namespace {

constexpr std::int64_t kMostRuns = 64;
constexpr std::size_t kMostStretches = 16;
// The area at a corner of the mask that contains no pair: half a position by half a position, on
// both sides.
constexpr double kCorner = 0.26;

// The area of k <= q + shift over queries x keys.
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
  for (int pass = 0; pass < 2; ++pass) {  // home digits first, as in the form writer
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

std::int64_t Positions::value_of(const Digit& digit, const PartCoordinates& rank,
                                 const LoopTimes* time) const {
  const int own = rank[static_cast<std::size_t>(digit.part)];
  if (digit.parallel) return own;
  if (digit.loop < 0 || time == nullptr) return -1;
  return (own + (*time)[static_cast<std::size_t>(digit.loop)]) % digit.extent;
}

void Positions::stretches(const PartCoordinates& rank, const LoopTimes* time,
                          std::vector<Stretch>& out) const {
  std::vector<Run> runs;
  collect(rank, time, 0, 0, 1, runs);
  std::ranges::sort(runs, {}, &Run::begin);
  out.clear();
  const double unit = size_ / static_cast<double>(blocks_);
  std::int64_t end = -1;
  for (const Run& run : runs) {
    if (run.begin == end) {
      out.back().end = static_cast<double>(run.end) * unit;
    } else {
      out.push_back({static_cast<double>(run.begin) * unit, static_cast<double>(run.end) * unit});
    }
    end = run.end;
  }
}

void Positions::collect(const PartCoordinates& rank, const LoopTimes* time, std::size_t digit,
                        std::int64_t value, std::int64_t runs, std::vector<Run>& out) const {
  std::int64_t inner = 1;
  bool fixed = false;
  for (std::size_t i = digit; i < digits_.size(); ++i) {
    inner *= digits_[i].extent;
    fixed = fixed || value_of(digits_[i], rank, time) >= 0;
  }
  const std::int64_t at = fixed ? value_of(digits_[digit], rank, time) : -1;
  const std::int64_t extent = digits_.empty() || !fixed ? 1 : digits_[digit].extent;
  if (at < 0) runs *= extent;
  if (!fixed || runs > kMostRuns) {  // many evenly spread runs count like the whole range
    add_run({value * inner, (value + 1) * inner}, out);
    return;
  }
  for (std::int64_t v = at < 0 ? 0 : at; v < (at < 0 ? extent : at + 1); ++v) {
    collect(rank, time, digit + 1, value * extent + v, runs, out);
  }
}

// A zigzag's two halves are mirrored; digits behind the home digits lie inside each half.
void Positions::add_run(Run run, std::vector<Run>& out) const {
  if (!zigzag_) {
    out.push_back(run);
    return;
  }
  const std::int64_t inner = blocks_ / 2 / homes_;
  const std::int64_t last = (run.end - 1) / inner;  // of the same home, or of whole homes
  out.push_back(run);
  const std::int64_t mirrored = (2 * homes_ - 1 - last) * inner;
  out.push_back(
      {mirrored + run.begin % inner, mirrored + run.begin % inner + (run.end - run.begin)});
}

double seen_pairs(const Visibility& visible, const std::vector<Stretch>& queries,
                  const std::vector<Stretch>& keys) {
  double seen = 0;
  double all = 0;
  const auto prefix = static_cast<double>(visible.prefix);
  // Many equal stretches are evenly spread, so some of them represent all.
  const std::size_t query_step = (queries.size() + kMostStretches - 1) / kMostStretches;
  const std::size_t key_step = (keys.size() + kMostStretches - 1) / kMostStretches;
  for (std::size_t i = query_step / 2; i < queries.size(); i += query_step) {
    const Stretch& q = queries[i];
    for (std::size_t j = key_step / 2; j < keys.size(); j += key_step) {
      const Stretch& k = keys[j];
      all += (q.end - q.begin) * (k.end - k.begin);
      const double shown = std::clamp(prefix, k.begin, k.end);
      seen += (q.end - q.begin) * (shown - k.begin);
      const Stretch rest{shown, k.end};
      if (rest.end <= rest.begin) continue;
      const double area = area_below(static_cast<double>(visible.high) + 0.5, q, rest) -
                          area_below(static_cast<double>(visible.low) - 0.5, q, rest);
      if (area > kCorner) seen += area;
    }
  }
  return all > 0 ? seen / all : 0;
}

}  // namespace harpe
