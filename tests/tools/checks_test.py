"""The checks of the sources find the faults that they look for, and accept correct sources."""
import graphlib
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))

import check_citations  # noqa: E402
import check_diagnostics  # noqa: E402
import check_includes  # noqa: E402
import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import check_wheel  # noqa: E402
import check_words  # noqa: E402


class Layers(unittest.TestCase):
    def findings(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for header in ("src/ir/blocks.h", "src/plan/plan.h", "src/machine/mesh.h",
                           "src/machine/links.h", "include/harpe/plan.h",
                           "src/exec/cuda/kernels/prepared_launches.h",
                           "src/exec/cuda/kernels/gemm/gemm.h"):
                (root / header).parent.mkdir(parents=True, exist_ok=True)
                (root / header).write_text("#pragma once\n")
            (root / "src/exec/cuda/kernels/through_cuda.h").write_text(
                "#pragma once\n#include <cuda.h>\n")
            path = root / ("" if name.startswith(("include/", "python/")) else "src") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            saved = check_layers.ROOT, check_layers.SRC
            check_layers.ROOT, check_layers.SRC = root, root / "src"
            try:
                return check_layers.check_file(path)
            finally:
                check_layers.ROOT, check_layers.SRC = saved

    def test_an_upward_include_is_found(self):
        self.assertEqual(self.findings("ir/a.cpp", '#include "plan/plan.h"\n'),
                         ["src/ir/a.cpp:1: `ir` may include leaves, support, so not `plan/plan.h`"])

    def test_ir_sees_the_mesh_and_nothing_else_of_the_machine(self):
        self.assertEqual(self.findings("ir/a.cpp", '#include "machine/mesh.h"\n'), [])
        self.assertEqual(len(self.findings("ir/a.cpp", '#include "machine/links.h"\n')), 1)

    def test_rooms_of_the_cuda_back_end_see_each_other_one_way(self):
        self.assertEqual(self.findings("exec/cuda/runtime/a.cpp",
                                       '#include "exec/cuda/kernels/prepared_launches.h"\n'),
                         ["src/exec/cuda/runtime/a.cpp:1: `exec/cuda/runtime` may include "
                          "exec/cuda/device, transport, support, so not "
                          "`exec/cuda/kernels/prepared_launches.h`"])
        for room in ("executor", "kernels", "kernels/plain", "kernels/attention"):
            self.assertEqual(len(self.findings(f"exec/cuda/{room}/a.cpp",
                                               '#include "exec/cuda/kernels/gemm/gemm.h"\n')), 1)
        self.assertEqual(self.findings("exec/cuda/profile/a.cpp",
                                       '#include "exec/cuda/kernels/gemm/gemm.h"\n'), [])

    def test_what_decides_launches_reaches_no_header_of_cuda(self):
        for name in ("exec/cuda/target/a.cpp", "exec/cuda/kernels/gemm/a.cpp"):
            self.assertEqual(self.findings(name, "#include <cuda.h>\n"), [
                f"src/{name}:1: it decides what H200s launch and reaches <cuda.h>"])
        self.assertEqual(self.findings("exec/cuda/kernels/gemm/prepare_gemm.cpp",
                                       "#include <cuda.h>\n"), [])
        # Included through a header of this project.
        self.assertEqual(self.findings("exec/cuda/target/a.cpp",
                                       '#include "exec/cuda/kernels/through_cuda.h"\n'), [
            "src/exec/cuda/target/a.cpp:1: it decides what H200s launch and reaches <cuda.h>"])

    def test_the_law_has_no_circle(self):
        graphlib.TopologicalSorter(check_layers.LAW).prepare()

    def test_the_verifier_may_not_use_our_blocks(self):
        self.assertEqual(
            self.findings("verify/a.cpp", '#include "ir/blocks.h"\n'),
            ["src/verify/a.cpp:1: `verify` keeps its own model and may not include `ir/blocks.h`"])

    def test_public_headers_see_each_other_and_the_library_alone_sees_them(self):
        public = '#pragma once\n#include <vector>\n#include "harpe/plan.h"\n'
        self.assertEqual(self.findings("include/harpe/a.h", public), [])
        for other in ('"plan/plan.h"', "<sys/stat.h>", "<unistd.h>"):
            text = public + "#include " + other + "\n"
            self.assertEqual(len(self.findings("include/harpe/a.h", text)), 1, other)
        self.assertEqual(self.findings("library/a.cpp", '#include "harpe/plan.h"\n'), [])
        self.assertEqual(self.findings("cli/a.cpp", '#include "harpe/plan.h"\n'),
                         ["src/cli/a.cpp:1: only `library` includes public headers"])

    def test_the_extension_sees_public_headers_alone(self):
        allowed = "#include <nanobind/nanobind.h>\n#include <vector>\n"
        self.assertEqual(
            self.findings("python/extension/a.cpp", allowed + '#include "harpe/plan.h"\n'), [])
        self.assertEqual(
            self.findings("python/extension/a.cpp", allowed + '#include "plan/plan.h"\n'),
            ["python/extension/a.cpp:3: `python/` includes no `plan/plan.h`"])
        self.assertEqual(len(self.findings("python/extension/a.cpp", "#include <fmt/core.h>\n")), 1)

    def test_threads_are_started_in_one_place(self):
        for text in ("std::thread one(work);", "std::vector<std::jthread> all;",
                     "auto it = std::jthread(work);", "auto it = std::async(work);"):
            self.assertEqual(len(self.findings("ir/a.cpp", text + "\n")), 1, text)
        for text in ("std::jthread watch();", "std::thread::hardware_concurrency();",
                     "return std::jthread();", "std::this_thread::yield();"):
            self.assertEqual(self.findings("ir/a.cpp", text + "\n"), [], text)
        self.assertEqual(self.findings("support/threads.cpp", "std::jthread(work);\n"), [])

    def test_only_the_command_line_reads_the_environment_and_ends_the_process(self):
        for text in ('std::getenv("HOME");', 'setenv("A", "b", 1);', "::_exit(1);", "std::exit(1);",
                     "std::abort();", "std::_Exit(1);"):
            self.assertEqual(len(self.findings("exec/a.cpp", text + "\n")), 1, text)
            self.assertEqual(self.findings("cli/a.cpp", text + "\n"), [], text)
        for text in ("nccl->abort();", "void Nccl::abort() {", "on_exit_of(1);", "// getenv(1)"):
            self.assertEqual(self.findings("exec/a.cpp", text + "\n"), [], text)

    def test_only_the_command_line_writes_options_as_flags(self):
        planted = {"support/diagnostics/a.def": 'HP_DIAG(A001, Illegal, "", "", "`--budget`")\n',
                   "exec/a.cpp": 'f("name its folder: `--libraries`");\n',
                   "run/a.cpp": "// What `--check` compares.\n"}
        for name, text in planted.items():
            self.assertEqual(len(self.findings(name, text)), 1, name)
            self.assertEqual(self.findings("cli/a.cpp", text), [], name)
        for text in ('f("raise `{option:budget}`");', "--left; // one --", 'f("a--b --");',
                     'f("style=--share:5");'):
            self.assertEqual(self.findings("exec/a.cpp", text + "\n"), [], text)
        self.assertEqual(self.findings("exec/cuda/jit/nvrtc.cpp", 'f("--std=c++20");\n'), [])

    def test_a_catch_is_found_but_not_in_comments(self):
        self.assertEqual(len(self.findings("ir/a.cpp", "int f() { try {} catch (...) {} }\n")), 1)
        self.assertEqual(self.findings("ir/a.cpp", "// never catch (anything)\n"), [])

    def test_heavy_headers_stay_out_of_headers(self):
        self.assertEqual(len(self.findings("ir/a.h", "#pragma once\n#include <regex>\n")), 1)


class Diagnostics(unittest.TestCase):
    flags = {"run": {"help", "mesh", "schedule"}, "tune": {"help", "mesh", "budget"}}

    def findings(self, text, verbs=()):
        return check_diagnostics.check_flags("S999", text, self.flags, verbs)

    def test_flags_are_read_from_the_table_of_flags(self):
        flags = check_diagnostics.read_flags((ROOT / "src/cli/flags.h").read_text(encoding="utf-8"))
        self.assertIn("budget", flags["tune"])
        self.assertNotIn("schedule", flags["tune"])
        self.assertIn("schedule", flags["run"])

    def test_texts_are_read_whole(self):
        text = ('HP_DIAG(A001, Illegal, "one "\n  "two",\n  // no text: "x"\n "why", "`--a`")\n'
                'HP_DIAG(\n  A002, Illegal, "three", "", "")\n')
        self.assertEqual(list(check_diagnostics.read_diagnostics(text)),
                         [("A001", "one twowhy`--a`"), ("A002", "three")])

    def test_an_option_is_what_programs_give_and_a_flag_of_the_command_line(self):
        public = "struct Q {\n  std::string layout = {};\n  std::int64_t budget{1};\n};\n"
        right = "raise `{option:budget}`, leave `{option:layout=any}` or `{option:backend=cpu}`"
        self.assertEqual(check_diagnostics.check_options(right, public), [])
        self.assertEqual(check_diagnostics.check_options("`{option:layot}`", public),
                         ["`{option:layot}` is no field of include/harpe, nor of the command line "
                          "alone"])
        self.assertEqual(check_diagnostics.write_flags("use `{option:any_placement}` {path} "
                                                       "`{option:cpu_kernels=own}`",
                                                       {"any_placement": "contract free"}),
                         "use `--contract free` {path} `--cpu-kernels own`")

    def test_a_flag_of_no_verb_is_found(self):
        self.assertEqual(self.findings("use `--budge`", ["tune"]),
                         ["S999 names `--budge`, which is a flag of no verb"])

    def test_a_flag_that_an_emitting_verb_lacks_is_found(self):
        self.assertEqual(self.findings("use `--schedule S`", ["run"]), [])
        self.assertEqual(self.findings("use `--schedule S`", ["run", "tune"]),
                         ["S999 names `--schedule`, which `tune` does not have"])

    def test_a_flag_of_a_verb_that_is_named_is_looked_up_there(self):
        self.assertEqual(self.findings("use `harpe run --schedule S`", ["tune"]), [])
        self.assertEqual(self.findings("use `harpe tune --schedule S`"),
                         ["S999 names `--schedule`, which `tune` does not have"])

    def test_a_flag_alone_needs_verbs_unless_all_have_it(self):
        self.assertEqual(len(self.findings("use `--budget`")), 1)
        self.assertEqual(self.findings("see `harpe --help`, or `--mesh`"), [])

    def test_a_golden_case_shows_which_verb_emits(self):
        case = "--- run\nharpe tune x.op\n--- stderr\nerror[S703]: no; use `--schedule F`\n"
        self.assertEqual(check_diagnostics.check_case("a.comm", case, self.flags),
                         ["a.comm: S703 names `--schedule`, which `tune` does not have"])


class Sizes(unittest.TestCase):
    def lengths(self, text):
        return [(length, head) for _, length, head in check_sizes.functions(text)]

    def test_a_function_is_counted_from_its_head_to_its_brace(self):
        self.assertEqual(self.lengths("namespace a {\nint f(\n    int x) {\n  return x;\n}\n}\n"),
                         [(4, "int f( int x)")])

    def test_braces_in_strings_comments_and_characters_do_not_count(self):
        text = ("int f() {\n  g(\"{\");  // {\n  h('{');\n  auto r = R\"({)\";\n}\n"
                "int k() { return 1; }\n")
        self.assertEqual(self.lengths(text), [(5, "int f()"), (1, "int k()")])

    def test_member_initialisers_and_tables_are_not_functions(self):
        text = ("struct A {\n  A() : x{1}, y{2} {\n    run();\n  }\n  int x{3};\n};\n"
                "constexpr Row kRows[] = {{f(1), 2}, {3, 4}};\n")
        self.assertEqual(self.lengths(text), [(3, "A() : x{1}, y{2}")])


class Words(unittest.TestCase):
    def refused(self, line):
        return any(pattern.search(line) for pattern, _ in check_words.RULES)

    def test_unfinished_work_needs_an_issue(self):
        self.assertTrue(self.refused("// " + "TO" + "DO: later"))
        self.assertFalse(self.refused("// " + "TO" + "DO(#12): later"))

    def test_paths_of_one_machine_are_refused(self):
        self.assertTrue(self.refused("see " + "/home" + "/me/file"))
        self.assertFalse(self.refused("src/home/page and a/" + "work/b"))


class Citations(unittest.TestCase):
    FILES = {
        check_citations.SPECIFICATION: (
            "# The rules\n## 4. Semantics\n### 4.1 Block map\n**Theorem 1 (coverage).** Once.\n"
            "## 7. Plan\n### 7.2 Steps\n1. walk\n2. order\n## Appendix A\n### A.5 Experts\n"
            '- <a id="d1"></a>D1. Digits.\n- <a id="d12"></a>D12. Sizes.\n'
            "```\n## 9. no heading\n```\n"),
        "docs/decisions/0001-mesh.md": "# 0001: meshes\n",
        "docs/page.md": "# A page\n## What it `does`, and how\n",
        "src/lower/lower.h": "#pragma once\n",
        "src/support/diagnostics/form.def": 'HP_DIAG(F209, Illegal, "no", "", "")\n',
    }

    def findings(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, content in {**self.FILES, name: text}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content, encoding="utf-8")
            tree = check_citations.Tree(root, [*self.FILES, name])
            return check_citations.check_file(tree, name)

    def test_what_a_page_has_may_be_cited(self):
        self.assertEqual(self.findings("src/a.h", (
            "// Blocks (commir.md 4.1, D12), sections (commir.md sections 4 and 7), a theorem\n"
            "// (commir.md theorem 1), steps (commir.md 7.2 steps 1, 2), ranges (commir.md 4 to 7\n"
            "// that hold), an appendix (commir.md 7, A.5), words (commir.md 4.1, own_U of 0..3),\n"
            "// the next line (commir.md\n// 4.1): 9 of it. D1, Theorem 1, decision 0001.\n"
            "// src/lower/lower.h, src/lower/*.h and src/LABEL/lower.h. F209 on an H100.\n")), [])

    def test_what_a_page_lacks_is_found(self):
        for cite, what in (
                ("commir.md 4.2", "section 4.2"), ("commir.md section 9", "section 9"),
                ("commir.md 4 to 8", "section 8"), ("commir.md D1, Q2", "has no Q2"),
                ("commir.md\n// 5", "section 5"), ('commir.md "\n  "5', "section 5"),
                ("commir.md theorem 2", "theorem 2"), ("Theorems 1 to 4", "theorem 4"),
                ("commir.md 7.2 (3)", "step 3 of 7.2"), ("D13", "has no D13"),
                ("commir.md 7.2, step 4", "step 4 of 7.2"), ("commir.md 7, A.6", "section A.6")):
            found = self.findings("src/a.h", f"// By a rule ({cite}).\n")
            self.assertTrue(any(what in line for line in found), (cite, found))

    def test_pages_decisions_paths_and_codes_that_are_not_there_are_found(self):
        for cite in ("notes.md", "../other/commir.md", "decision 0002", "src/lower/raise.h",
                     "docs/page.md#else", "src/lower/*.cpp", "F210"):
            self.assertTrue(self.findings("src/a.h", f"// See {cite}.\n"), cite)

    def test_links_lead_to_files_and_anchors(self):
        self.assertEqual(self.findings("docs/b.md", (
            "# B\n[a](page.md) [b](page.md#what-it-does-and-how) [c](#b)\n"
            "[d](https://arxiv.org/x) [e](reference/commir.md#d12) [f](decisions) `[g](code)`\n"
            "```\n[h](example)\n```\n")), [])
        for link in ("gone.md", "page.md#gone", "#gone", "../src/lower/lower.h#gone", "gone/"):
            self.assertTrue(self.findings("docs/b.md", f"[a]({link})\n"), link)

    def test_code_in_a_page_may_name_the_end_of_a_path(self):
        self.assertEqual(self.findings("docs/b.md", "`lower/lower.h`, `lower.*`, `rs.plan`\n"), [])
        self.assertEqual(self.findings("docs/b.md", "\n`lower/raise.h`\n"),
                         ["docs/b.md:2: there is no file `lower/raise.h`"])

    def test_a_column_headed_by_a_page_cites_it(self):
        table = "| stage | commir.md |\n|---|---|\n| one | 7.2 (2), D1 |\n| two | 4.1–4.{} |\n"
        self.assertEqual(self.findings("docs/b.md", table.format(1)), [])
        self.assertEqual(self.findings("docs/b.md", table.format(3)),
                         [f"docs/b.md:4: `{check_citations.SPECIFICATION}` has no section 4.3"])


class Includes(unittest.TestCase):
    DEPS = """tests/a.o: #deps 2, deps mtime 1 (VALID)
    a.cpp
    heavy.h

src.dir/b.o: #deps 1, deps mtime 1 (VALID)
    b.cpp

src.dir/gone.o: #deps 1, deps mtime 1 (STALE)
    heavy.h
"""
    SIZES = {"a.cpp": 10, "b.cpp": 20, "heavy.h": 5_000}

    def test_units_cost_what_they_read_and_stale_ones_nothing(self):
        units = check_includes.read_deps(self.DEPS)
        groups, headers = check_includes.measure(units, self.SIZES.__getitem__)
        self.assertEqual(groups, {"tests": 5_010, "src": 20})
        self.assertEqual(headers["heavy.h"], 5_000)

    def test_a_group_above_its_budget_is_a_finding(self):
        most = check_includes.BUDGETS["src"] * check_includes.MEGABYTE
        self.assertEqual(check_includes.findings({"src": most, "tests": 0, "bench": 0}), [])
        over = check_includes.findings({"src": most + 1, "tests": 0, "bench": 0})
        self.assertEqual(len(over), 1)
        self.assertIn("src: the units read", over[0])


class Wheels(unittest.TestCase):
    NAMES = ["harpe/__init__.py", "harpe/_harpe.abi3.so", "harpe-0.1.0.dist-info/licenses/LICENSE",
             "harpe-0.1.0.dist-info/licenses/packaging/licenses/third-party.txt"]

    def test_files_of_others_and_missing_ones_are_findings(self):
        self.assertEqual(list(check_wheel.check_names(self.NAMES)), [])
        for name in "harpe/libnvrtc.so.13", "harpe/cuda.h", "nvidia/cu13/LICENSE", "other/a.py":
            with self.subTest(name):
                self.assertIn(f"`{name}` does not belong in it",
                              list(check_wheel.check_names([*self.NAMES, name])))
        self.assertEqual(list(check_wheel.check_names(self.NAMES[:3])),
                         ["`/licenses/packaging/licenses/third-party.txt` is missing"])
        self.assertEqual(list(check_wheel.check_names(["harpe/a.so", *self.NAMES])),
                         ["extensions are ['harpe/a.so', 'harpe/_harpe.abi3.so'], not one "
                          "`harpe/_harpe.….so`"])

    def test_licences_links_and_versions_are_read(self):
        text = "".join(f"{name}    MIT\n" for name in check_wheel.LICENCES[1:])
        self.assertEqual(list(check_wheel.check_licences(text)),
                         ["third-party.txt does not name fmt"])
        dynamic = " 0x1 (NEEDED)  Shared library: [{}]\n"
        links = dynamic.format("libc.so.6") + dynamic.format("libcuda.so.1")
        self.assertEqual(list(check_wheel.check_links(links)), ["the extension links libcuda.so.1"])
        symbols = "Name: GLIBC_2.4  Name: GLIBC_2.35  Name: GLIBC_2.9  Name: GLIBCXX_3.4.30"
        self.assertEqual(check_wheel.least_versions(symbols),
                         {"GLIBC": "2.35", "GLIBCXX": "3.4.30"})


if __name__ == "__main__":
    unittest.main()
