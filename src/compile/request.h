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

// Told of what is passed over and not refused.
using Warn = std::function<void(const Diag&)>;

// What a command line asks for: an operator or file, sizes, ranks and a schedule, as written.
struct Request {
  std::string target;                       // operator, FILE.op or FILE.plan
  std::vector<std::string> parameters;      // "seq=4096"
  std::vector<std::string> inputs = {};     // that files give: what they depend on is turned on
  std::optional<std::string> mesh;          // "node=2,gpu=4"
  std::optional<std::string> schedule;      // a name, FILE.sched or "auto"; none is "auto"
  std::vector<std::string> homes = {};      // that stay: "k=Skv@node,Skv@gpu", "q="
  std::string layout = "any";               // or "contiguous", "zigzag": read_constraints
  std::optional<std::string> machine = {};  // that `auto` searches for; none: by the mesh
  // Folder of earlier searches' answers, of this version of Harpe, that `auto` takes where it asks
  // the same; none: it always searches.
  std::optional<std::string> cache = {};
  std::string version = {};
  // Texts of a `.op`, `.sched` and `.machine` file in place of one, whose name is then only shown.
  std::optional<std::string> program_text = {};
  std::optional<std::string> schedule_text = {};
  std::optional<std::string> machine_text = {};
  // Where the plan will run: what was measured there comes first for `auto`; none: as predicted.
  std::optional<Site> site = {};
  // What the plan will run on where that is no machine of one's choice: `auto` offers only what
  // runs there, and without `machine` searches for it.
  std::optional<Machine> runs_on = {};
  // How long a search for `auto` may take; without an end it is given up (I505). None: any time.
  std::optional<std::chrono::seconds> patience = {};
  // Of that search; true gives it up as well.
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t of)> progress = {};
  std::function<bool()> interrupted = {};
};

// What `auto` came to, and how.
struct AutoForm {
  NormalForm form;
  std::string machine = {};                     // that was searched for; "": a rule chose
  std::optional<SearchResult> search = {};      // that found it now
  std::optional<std::string> known_since = {};  // the date of the cache's answer
};

// A program with its schedule on a mesh: everything above the plan.
struct Scheduled {
  Program program;  // ground
  Mesh mesh;
  std::optional<Script> script;  // none where a file holds the normal form alone
  NormalForm form;
  std::optional<AutoForm> choice = {};  // where the request asks for `auto`
};

}  // namespace harpe
