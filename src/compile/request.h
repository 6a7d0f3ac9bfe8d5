#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/site.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "schedule/script.h"
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
  std::optional<std::string> machine = {};  // that `auto` searches for; none: by the mesh
  // Folder of earlier searches' answers, of this version of Harpe, that `auto` takes where it asks
  // the same; none: it always searches.
  std::optional<std::string> cache = {};
  std::string version = {};
  // The text of a `.sched` file in place of one; `schedule` is then only its name.
  std::optional<std::string> schedule_text = {};
  // Where the plan will run: what was measured there comes first for `auto`; none: as predicted.
  std::optional<Site> site = {};
  // What the plan will run on where that is no machine of one's choice: `auto` offers only what
  // runs there, and without `machine` searches for it.
  std::optional<Machine> runs_on = {};
  // How long a search for `auto` may take; without an end it is given up (I505). None: any time.
  std::optional<std::chrono::seconds> patience = {};
};

// A program with its schedule on a mesh: everything above the plan.
struct Scheduled {
  Program program;  // ground
  Mesh mesh;
  std::optional<Script> script;  // none where a file holds the normal form alone
  NormalForm form;
};

}  // namespace harpe
