#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "search/problem.h"
#include "search/search.h"
#include "search/space.h"

namespace harpe {

// The subject of a command line: "attention", {"seq=64"}, "cp=4", a machine's name.
struct CaseText {
  std::string op;
  std::vector<std::string> parameters;
  std::string mesh;
  std::string machine = "h200x8";
  Contract contract = Contract::Standard;
  int cuts = 1;
  std::string homes_of = "";  // the named schedule that gives the fixed homes
};

[[nodiscard]] std::string print(const CaseText& text);

// The input of a search. `problem` points into the case, which must not move.
struct Case {
  CaseText text;
  Program program;
  Mesh mesh;
  Machine machine;
  NormalForm standard;
  Problem problem;
  std::vector<Place> fixed;  // as in Constraints
  [[nodiscard]] SearchOptions options() const;
};
[[nodiscard]] std::unique_ptr<Case> make_case(const CaseText& text);
// On a machine that the test defines.
[[nodiscard]] std::unique_ptr<Case> make_case(const CaseText& text, const Machine& machine);

// Without a problem, for operators that have only named schedules.
[[nodiscard]] std::unique_ptr<Case> make_named_case(const CaseText& text);
[[nodiscard]] std::unique_ptr<Case> make_named_case(const CaseText& text, const Machine& machine);

[[nodiscard]] std::vector<Candidate> candidates_of(const Case& one);
// The form of a named schedule, which must apply.
[[nodiscard]] NormalForm named_form(const Case& one, const std::string& schedule);

// Nodes of `gpus` processors: fast inside, `slowness` times slower between nodes.
struct Pairs {
  int nodes = 2;
  int gpus = 2;
  double slowness = 10;
  double memory_gib = 64;
  double teraflops = 100;
};
[[nodiscard]] Machine node_machine(const Pairs& pairs);
// One level of the given kind: "switch", "ring", "bus".
[[nodiscard]] Machine flat_machine(const std::string& kind, int ranks, double gigabytes,
                                   double teraflops = 100);

}  // namespace harpe
