#include "tests/support/random_chain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "support/check.h"

namespace harpe::testing_support {
namespace {

using Random = std::mt19937_64;

struct Feature {  // an axis of columns
  std::string name;
  std::int64_t size = 1;
  bool divided = false;  // the axis of columns is divided over x
  [[nodiscard]] std::string digit() const { return "f" + name.substr(1) + "d"; }
};

class Draft {
 public:
  explicit Draft(std::uint64_t seed) : random_(seed) {}

  Chain finish() {
    choose_mesh();
    choose_types();
    current_ = add_input(add_feature(), "");
    const std::int64_t turns = below(3) + 2;
    for (std::int64_t turn = 0; turn < turns; ++turn) add_turn();
    if (chain_.types.at(current_) != type_ || below(4) == 0) add_pointwise();
    return write();
  }

 private:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  template <std::size_t kCount>
  std::string one_of(const std::array<const char*, kCount>& choices) {
    return choices[static_cast<std::size_t>(below(kCount))];
  }

  void choose_mesh() {
    constexpr std::array<std::pair<int, int>, 9> kMeshes{
        {{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 4}, {4, 1}, {2, 2}, {1, 2}}};
    std::tie(by_rows_, by_columns_) = kMeshes[static_cast<std::size_t>(below(kMeshes.size()))];
    chain_.ranks = by_rows_ * by_columns_;
    chain_.mesh =
        "mesh ranks = y:" + std::to_string(by_rows_) + ", x:" + std::to_string(by_columns_);
    rows_ = one_in(4) ? below(5) + 1 : below(48) + 1;
  }

  void choose_types() {
    constexpr std::array kTypes = {DType::F32, DType::F32, DType::BF16, DType::F16, DType::F64};
    type_ = kTypes[static_cast<std::size_t>(below(kTypes.size()))];
    wire_ = type_ == DType::F32 && one_in(8);
    chain_.narrowest = wire_ ? DType::BF16 : type_;
  }

  std::size_t add_feature() {
    const std::string name = "F" + std::to_string(features_.size());
    const std::int64_t size = one_in(5) ? 1 : (one_in(3) ? below(160) + 1 : below(24) + 1);
    features_.push_back({name, size, by_columns_ > 1 && one_in(2)});
    return features_.size() - 1;
  }

  std::string declare(std::int64_t rows, std::size_t feature, DType type) {
    const std::string name = "v" + std::to_string(100 + chain_.shapes.size());
    chain_.shapes[name] = {rows, features_[feature].size};
    chain_.types[name] = type;
    feature_of_[name] = feature;
    return name;
  }

  // An input with the program's rows; with a twin it nearly cancels that input.
  std::string add_input(std::size_t feature, const std::string& twin) {
    const std::string name = declare(rows_, feature, type_);
    buffers_ += "  buffer " + name + " : " + std::string(print(type_)) + "[M, " +
                features_[feature].name + "] in\n";
    if (!twin.empty()) chain_.twins[name] = twin;
    place_rows(name);
    return name;
  }

  std::string add_weight(std::size_t from, std::size_t to, const std::string& home,
                         const std::string& twin) {
    const std::string name = declare(features_[from].size, to, type_);
    buffers_ += "  buffer " + name + " : " + std::string(print(type_)) + "[" +
                features_[from].name + ", " + features_[to].name + "] in\n";
    places_ += "  place " + name + "[" + home + "]\n";
    if (!twin.empty()) chain_.twins[name] = twin;
    return name;
  }

  std::string add_value(std::size_t feature) {
    const std::string name = declare(rows_, feature, type_);
    made_.push_back(name);
    place_rows(name);
    return name;
  }

  void place_rows(const std::string& name) {
    const Feature& feature = features_[feature_of_.at(name)];
    places_ += "  place " + name + "[m0@y" +
               (feature.divided ? ", " + feature.digit() + "@x" : "") + "]\n";
  }

  void add_step(const std::string& leaf, const std::string& target,
                const std::vector<std::string>& operands, const std::string& attributes = "") {
    const bool sums = leaf == "matmul";
    statements_ += "    " + target + (sums ? " sum= " : " = ") + leaf + "(";
    for (const std::string& operand : operands) {
      statements_ +=
          (operand == operands.front() && statements_.back() == '(' ? "" : ", ") + operand;
    }
    statements_ += attributes + ")\n";
    chain_.steps.push_back({leaf, target, operands});
  }

  void end_nest(const std::string& axes, const std::string& items) {
    const std::string name = "n" + std::to_string(nests_count_++);
    nests_ += "  nest " + name + " over " + axes + " {\n" + statements_ + "  }\n";
    forms_ += "  nest " + name + " {\n    par m0 on y\n" + items + "    leaf\n  }\n";
    statements_.clear();
  }

  void add_turn() {
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        return add_product(one_in(3));
      case 3:
        return add_difference();
      case 4:
        return add_norm();
      case 5:
        add_product(true);
        return add_product(false);
      default:
        return add_pointwise();
    }
  }

  // How a GEMM of values with columns F makes columns G.
  struct Way {
    std::string home;   // of the weights
    std::string items;  // before the drains
    std::string drain;  // of every target: the text after its name
    std::string stage;  // of every weight
  };

  // The wire type of partial sums. They have one operand type.
  std::string wire() { return wire_ && one_in(2) ? " wire bf16" : ""; }

  // Every rank sums its part of the contraction.
  Way reduce(const Feature& from, const Feature& to) {
    Way way{.home = from.digit() + "@x",
            .items = "    par " + from.digit() + " on x\n",
            .drain = "",
            .stage = ""};
    const std::int64_t how = below(to.divided ? 3 : 2);
    if (how == 2) {
      way.items += "    for " + to.digit() + " skew x + 1\n";
      way.drain = "relay by src depth 2" + wire() + " via ce signal event";
    } else {
      way.drain = how == 0 ? "bulk" + wire() + " via nccl"
                           : "direct by src" + wire() + " via sm signal counter";
    }
    return way;
  }

  // The ranks gather the columns that they need.
  Way gather(const std::string& value, const Feature& from, const Feature& to) {
    Way way{.home = to.divided ? to.digit() + "@x" : "",
            .items = to.divided ? "    par " + to.digit() + " on x\n" : "",
            .drain = "",
            .stage = ""};
    const bool loops = one_in(2);
    if (loops) way.items += "    for " + from.digit() + " skew x\n";
    way.items += "    stage " + value + " over x " +
                 (loops ? "relay by src depth 2 via ce signal event" : "bulk via nccl") + "\n";
    return way;
  }

  // Every rank already has the values.
  Way keep(const Feature& from, const Feature& to) {
    Way way{.home = "", .items = "", .drain = "", .stage = ""};
    if (to.divided) {
      way.items = "    par " + to.digit() + " on x\n";
      if (one_in(2)) way.home = to.digit() + "@x";
    } else if (by_columns_ > 1 && one_in(2)) {
      way.home = from.digit() + "@x";
      way.items = "    for " + from.digit() + " skew x\n";
      way.stage = "relay by src depth 2 via ce signal event";
      return way;
    }
    if (one_in(3)) way.items += "    for " + from.digit() + "\n";
    return way;
  }

  void add_product(bool cancels) {
    const std::size_t to_index = add_feature();
    const std::size_t from_index = feature_of_.at(current_);
    const Feature& from = features_[from_index];
    const Feature& to = features_[to_index];
    Way way = keep(from, to);
    if (from.divided) way = one_in(3) ? gather(current_, from, to) : reduce(from, to);
    std::vector<std::string> targets;
    std::string weight;
    std::string items = way.items;
    for (int i = 0; i < (cancels ? 2 : 1); ++i) {
      weight = add_weight(from_index, to_index, way.home, i == 0 ? "" : weight);
      targets.push_back(add_value(to_index));
      add_step("matmul", targets.back(), {current_, weight});
      if (!way.stage.empty()) items += "    stage " + weight + " over x " + way.stage + "\n";
      if (!way.drain.empty())
        items += "    drain " + targets.back() + " over x " + way.drain + "\n";
    }
    end_nest("(M, " + to.name + ", " + from.name + ")", items);
    current_ = targets.front();
    if (cancels) join("add", targets[0], targets[1]);
  }

  // Adds one pointwise nest with the columns of `a`.
  void join(const std::string& leaf, const std::string& a, const std::string& b) {
    const std::size_t index = feature_of_.at(a);
    const std::string target = add_value(index);
    add_step(leaf, target, b.empty() ? std::vector{a} : std::vector{a, b});
    const Feature& feature = features_[index];
    end_nest("(M, " + feature.name + ")",
             feature.divided ? "    par " + feature.digit() + " on x\n" : "");
    current_ = target;
  }

  void add_pointwise() {
    constexpr std::array<const char*, 4> kOne = {"silu", "relu", "gelu", "copy"};
    constexpr std::array<const char*, 3> kTwo = {"add", "mul", "silu_mul"};
    const std::size_t feature = feature_of_.at(current_);
    if (one_in(2)) return join(one_of(kOne), current_, "");
    std::vector<std::string> others;
    for (const std::string& name : made_) {
      if (feature_of_.at(name) == feature && name != current_) others.push_back(name);
    }
    const bool old = !others.empty() && one_in(2);
    const std::string other =
        old ? others[static_cast<std::size_t>(below(std::ssize(others)))] : add_input(feature, "");
    join(one_of(kTwo), current_, other);
  }

  // Adds two cancelling inputs to the current value, in a random order.
  void add_difference() {
    const std::size_t feature = feature_of_.at(current_);
    const std::string input = add_input(feature, "");
    const std::string twin = add_input(feature, input);
    join("add", one_in(2) ? current_ : input, one_in(2) ? twin : input);
    if (one_in(2)) join("add", current_, twin);
  }

  void add_norm() {
    const std::size_t index = feature_of_.at(current_);
    const Feature feature = features_[index];
    if (feature.divided) return add_product(true);
    const std::string squares = "v" + std::to_string(100 + chain_.shapes.size());
    chain_.shapes[squares] = {rows_, 1};
    chain_.types[squares] = type_ == DType::F64 ? DType::F64 : DType::F32;
    buffers_ +=
        "  buffer " + squares + " : " + std::string(print(chain_.types[squares])) + "[M] temp\n";
    places_ += "  place " + squares + "[m0@y]\n";
    add_step("rowdot", squares, {current_, current_});
    nests_ += "  nest n" + std::to_string(nests_count_) + " over (M) whole (" + feature.name +
              ") {\n" + statements_ + "  }\n";
    forms_ += "  nest n" + std::to_string(nests_count_++) + " {\n    par m0 on y\n    leaf\n  }\n";
    statements_.clear();
    const std::string target = add_value(index);
    add_step("rms_scale", target, {current_, squares},
             "; length=" + std::to_string(feature.size) + ", eps=0.001");
    end_nest("(M, " + feature.name + ")", "");
    current_ = target;
  }

  Chain write() {
    chain_.output = current_;
    std::string& program = chain_.program;
    program = "program chain {\n  axis M = " + std::to_string(rows_) + "\n";
    std::string splits = "  split M = m0:" + std::to_string(by_rows_) + " * m1:_\n";
    for (const Feature& feature : features_) {
      program += "  axis " + feature.name + " = " + std::to_string(feature.size) + "\n";
      splits += "  split " + feature.name + " = " + feature.digit() + ":" +
                std::to_string(by_columns_) + " * " + feature.digit() + "r:_\n";
    }
    program += buffers_;
    for (const std::string& name : made_) {
      program += "  buffer " + name + " : " + std::string(print(chain_.types.at(name))) + "[M, " +
                 features_[feature_of_.at(name)].name + "] " +
                 (name == chain_.output ? "out" : "temp") + "\n";
    }
    program += nests_ + "}\n";
    chain_.form = "commir drawn for chain on ranks {\n" + splits + places_ + forms_ + "}\n";
    return std::move(chain_);
  }

  Random random_;
  Chain chain_;
  std::vector<Feature> features_;
  std::map<std::string, std::size_t> feature_of_;
  std::vector<std::string> made_;
  std::string current_;
  std::string buffers_, places_, nests_, forms_, statements_;
  std::int64_t rows_ = 1;
  int by_rows_ = 1;
  int by_columns_ = 1;
  int nests_count_ = 0;
  DType type_ = DType::F32;
  bool wire_ = false;
};

}  // namespace

Chain draw_chain(std::uint64_t seed) { return Draft(seed).finish(); }

TensorMap draw_chain_inputs(const Chain& chain, std::uint64_t seed) {
  Random random(seed);
  TensorMap inputs;
  for (const auto& [name, shape] : chain.shapes) {
    const bool made = std::ranges::find(chain.steps, name, &ChainStep::target) != chain.steps.end();
    if (made) continue;
    const DType type = chain.types.at(name);
    HostTensor tensor = random_tensor(type, {shape.first, shape.second}, seed, name);
    const bool positive = random() % 4 == 0;
    const int up = type == DType::F16 ? 0 : 3;  // so that f16 products do not overflow
    const double scale = std::ldexp(1, static_cast<int>(random() % 4) - 3 + up);
    const double gap = random() % 8 == 0 ? 0 : std::ldexp(1, -2 - static_cast<int>(random() % 19));
    const auto twin = chain.twins.find(name);
    for (std::int64_t i = 0; i < element_count(tensor); ++i) {
      const double x = load(tensor, i);
      if (twin != chain.twins.end()) {
        store(tensor, i, -load(inputs.at(twin->second), i) * (1 + gap * x));
      } else {
        store(tensor, i, scale * (positive ? std::abs(x) : x));
      }
    }
    inputs.emplace(name, std::move(tensor));
  }
  return inputs;
}

}  // namespace harpe::testing_support
