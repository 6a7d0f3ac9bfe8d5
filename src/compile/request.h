#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/site.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "schedule/script.h"
#include "search/search.h"
#include "support/diag.h"

namespace harpe {

// Receives warnings about what is skipped rather than refused.
using Warn = std::function<void(const Diag&)>;

// A command line's request: an operator or file, sizes, ranks and a schedule, as written.
struct Request {
  std::string target;                       // operator, FILE.op or FILE.plan
  std::vector<std::string> parameters;      // "seq=4096"
  std::vector<std::string> inputs = {};     // given as files; turns on what they depend on
  std::optional<std::string> mesh;          // "node=2,gpu=4"
  std::optional<std::string> schedule;      // a name, FILE.sched or "auto"; none is "auto"
  std::vector<std::string> homes = {};      // fixed homes: "k=Skv@node,Skv@gpu", "q="
  std::string layout = "any";               // or "contiguous", "zigzag": read_constraints
  std::optional<std::string> machine = {};  // for the search of `auto`; none: by the mesh
  // The folder with answers of earlier searches by this version of Harpe, which `auto` reuses for
  // an equal question; none: it always searches.
  std::optional<std::string> cache = {};
  std::string version = {};
  // Texts that replace a `.op`, `.sched` and `.machine` file; the file's name is then only shown.
  std::optional<std::string> program_text = {};
  std::optional<std::string> schedule_text = {};
  std::optional<std::string> machine_text = {};
  // Where the plan will run: `auto` prefers schedules measured there; none: the best predicted.
  std::optional<Site> site = {};
  // The machine that the plan must run on, if the caller cannot choose it. `auto` considers only
  // schedules that run there, and without `machine` searches for it.
  std::optional<Machine> runs_on = {};
  // How long a search for `auto` may take before it is given up (I505). None: any time.
  std::optional<std::chrono::seconds> patience = {};
  // For that search; true gives it up as well.
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t of)> progress = {};
  std::function<bool()> interrupted = {};
};

// The choice of `auto`, and its origin.
struct AutoForm {
  NormalForm form;
  std::string machine = {};                     // searched for; "": a rule chose
  std::optional<SearchResult> search = {};      // the new search that found it
  std::optional<std::string> known_since = {};  // the date of the cache's answer
};

// A program with its schedule on a mesh: everything above the plan.
struct Scheduled {
  Program program;  // ground
  Mesh mesh;
  std::optional<Script> script;  // none if a file holds only the normal form
  NormalForm form;
  std::optional<AutoForm> choice = {};  // if the request's schedule is `auto`
};

}  // namespace harpe
