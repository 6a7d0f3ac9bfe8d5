#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace harpe::cli {

// Verbs as bits: which flags belong to which.
enum VerbBit : std::uint32_t {
  kOps = 1U << 0U,
  kShow = 1U << 1U,
  kSchedules = 1U << 2U,
  kLower = 1U << 3U,
  kVerify = 1U << 4U,
  kRun = 1U << 5U,
  kSimulate = 1U << 6U,
  kTaxes = 1U << 7U,
  kExplain = 1U << 8U,
  kMachines = 1U << 9U,
  kProfile = 1U << 10U,
  kValidate = 1U << 11U,
  kTune = 1U << 12U,
  kCache = 1U << 13U,
  kKernels = 1U << 14U,
  kDoctor = 1U << 15U,
  kBench = 1U << 16U,
};

struct Flag {
  std::string_view name;   // long name, without dashes
  std::string_view brief;  // "-o" or ""
  std::string_view value;  // what its value looks like; "" for a switch
  std::string_view help;
  std::uint32_t verbs;
  bool repeats = false;
};

inline constexpr std::array kFlags = {
    Flag{"mesh", "", "NAME=SIZE,...", "the ranks, major axis first: cp=8, node=2,gpu=4",
         kShow | kSchedules | kLower | kVerify | kRun | kSimulate | kTaxes | kTune},
    Flag{"schedule", "", "S", "a name of `harpe schedules`, FILE.sched, or auto (default)",
         kShow | kLower | kVerify | kRun | kSimulate},
    Flag{"schedule", "", "S", "one of them, as for simulate (default: every name that applies)",
         kTaxes},
    Flag{"machine", "", "X", "a name of `harpe machines`, or FILE.machine (default by the mesh)",
         kShow | kLower | kVerify | kRun | kSimulate | kTaxes | kValidate | kTune},
    Flag{"cache", "", "DIR|off", "where searches keep their answers (default ~/.cache/harpe)",
         kShow | kLower | kVerify | kRun | kSimulate | kTaxes | kTune},
    Flag{"cache", "", "DIR|off", "where compiled kernels are kept (default ~/.cache/harpe)",
         kKernels | kBench | kProfile},
    Flag{"compile", "", "", "compile the kernels, without a GPU, and check what came of it",
         kKernels},
    Flag{"nvrtc", "", "FILE",
         "the library of the CUDA run-time compiler (default: where it usually is)",
         kRun | kTaxes | kKernels | kDoctor | kBench | kProfile},
    Flag{"libraries", "", "FOLDER,...",
         "where NCCL, cuBLASLt and cuDNN are, or a site-packages with their wheels",
         kDoctor | kBench},
    Flag{"top", "", "K", "how many schedules to show (default 8)", kTune},
    Flag{"budget", "", "SECONDS", "end the search after this, with what it has", kTune},
    Flag{"budget", "", "SECONDS", "begin no case after this (default 600)", kBench},
    Flag{"rounds", "", "N", "how often each has its turn; medians count (default 5)", kBench},
    Flag{"cases", "", "TEXT", "only the cases whose names have this in them", kBench},
    Flag{"contract", "", "standard|free",
         "homes of inputs and outputs: the operator's (default), or searched too", kTune},
    Flag{"home", "", "BUFFER=AXIS@MESHAXIS,...",
         "where an input or output lives, under either contract: k=Skv@cp; q= is everywhere", kTune,
         true},
    Flag{"numerics", "", "exact|reassociated|rounded",
         "what may happen to sums: order kept, partial states whole, or in the output's type "
         "(default)",
         kTune},
    Flag{"cuts", "", "N",
         "parts the mesh may be cut into beyond its axes (default 1 on up to two axes, else 0)",
         kTune},
    Flag{"exhaustive", "", "", "simulate every candidate", kTune},
    Flag{"measure", "", "", "execute the best on CPU ranks, and show the times", kTune},
    Flag{"verify-all", "", "", "execute every candidate on CPU ranks against the reference", kTune},
    Flag{"launch", "", "graph|host", "how kernels are launched: replayed (default), or one by one",
         kSimulate | kTaxes},
    Flag{"delay", "", "RANK=MICROSECONDS", "this rank starts late", kSimulate},
    Flag{"stage", "", "op|schedule|plan", "what to print (default: schedule with --mesh, else op)",
         kShow},
    Flag{"draw", "", "", "draw the plan: a column per rank, a row per step", kShow},
    Flag{"svg", "", "", "the same as an SVG image", kShow},
    Flag{"output-file", "-o", "FILE.plan", "write the plan here instead of standard output",
         kLower},
    Flag{"output-file", "-o", "FILE.plan", "write the best schedule's plan here", kTune},
    Flag{"output-file", "-o", "FILE.machine", "write the machine here, and show a summary",
         kProfile},
    Flag{"measured", "", "FOLDER", "where files of measurements are, NAME_peers.jsonl", kValidate},
    Flag{"backend", "", "cpu|cuda", "what to measure: the cores (default), or the GPUs", kProfile},
    Flag{"ranks", "", "N", "how many ranks work at once (default: one per core, or per GPU)",
         kProfile},
    Flag{"quick", "", "", "few and small shapes: figures are rough", kProfile},
    Flag{"ranks", "", "N", "how many ranks (default: one per GPU, 4 on CPUs)", kBench},
    Flag{"stop-after", "", "STAGE", "print the draft as this stage left it, and stop", kLower},
    Flag{"print-after", "", "STAGE|all", "print the draft after this stage, to standard error",
         kLower},
    Flag{"level", "", "auto|full|reduced",
         "every block of every rank, or of small likenesses (auto: above a million tasks)",
         kVerify},
    Flag{"memory", "", "BYTES", "refuse a plan whose ranks need more than this", kVerify | kTune},
    Flag{"sms", "", "N", "SMs a rank has for kernels that wait inside (default 132)", kVerify},
    Flag{"backend", "", "cpu|cuda", "where the ranks run (default cpu)", kRun | kBench},
    Flag{"share-gpus", "", "", "with fewer GPUs than ranks, let ranks share them (not for timing)",
         kRun | kTaxes | kBench},
    Flag{"launch", "", "N", "with `--backend cuda`: N processes of one rank and GPU each", kRun},
    Flag{"backend", "", "cpu|cuda",
         "cuda: measured on GPUs; cpu: of the machine `cpu` (default: simulated)", kTaxes},
    Flag{"input", "", "NAME=FILE.npy",
         "a whole input tensor; without it inputs are drawn from --seed", kRun, true},
    Flag{"output", "", "NAME=FILE.npy", "write a whole output tensor, as f32", kRun, true},
    Flag{"check", "", "", "compare with the independent reference", kRun},
    Flag{"check", "", "", "compare small cases with the independent reference too", kBench},
    Flag{"load", "", "FILE.npy", "how popular each expert is, where choices are drawn", kRun},
    Flag{"seed", "", "N", "of drawn inputs (default 0)", kRun | kTaxes | kTune | kBench},
    Flag{"iters", "", "N", "executions; times are of each (default 1)", kRun},
    Flag{"iters", "", "N", "executions back to back in a turn (default 10)", kBench},
    Flag{"iters", "", "N", "with `--backend cuda`: executions whose median counts (default 20)",
         kTaxes},
    Flag{"wait", "", "MILLISECONDS", "how long a rank waits for another (default 10000)", kRun},
    Flag{"trace", "", "FILE.json", "write a timeline for Perfetto or chrome://tracing",
         kRun | kSimulate},
    Flag{"report", "", "FILE.html", "write a page with charts; a browser opens it from disk",
         kRun | kSimulate | kTaxes | kTune},
    Flag{"inject", "", "lose=TASK|delay=SEED|bug",
         "lose a task's worker, let ranks linger, or break an invariant", kRun},
    Flag{"dir", "", "FOLDER", "of the plan cache (default $XDG_CACHE_HOME/harpe, ~/.cache/harpe)",
         kCache},
    Flag{"older", "", "DAYS", "prune: also what was found longer ago", kCache},
    Flag{"all", "", "", "every diagnostic, as the text of docs/errors.md", kExplain},
    Flag{"json", "", "FILE|-", "write one JSON object with inputs and results",
         kOps | kSchedules | kLower | kVerify | kRun | kSimulate | kTaxes | kMachines | kProfile |
             kValidate | kTune | kCache | kKernels | kDoctor | kBench},
    Flag{"paranoid", "", "", "read every text form back and compare",
         kShow | kSchedules | kLower | kVerify | kRun | kSimulate | kTaxes | kTune},
    Flag{"help", "-h", "", "this text",
         kOps | kShow | kSchedules | kLower | kVerify | kRun | kSimulate | kTaxes | kExplain |
             kMachines | kProfile | kValidate | kTune | kCache | kKernels | kDoctor | kBench},
};

}  // namespace harpe::cli
