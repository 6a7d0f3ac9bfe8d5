"""The checks of the sources find what they are for, and accept what is right."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import check_words  # noqa: E402


class Layers(unittest.TestCase):
    def findings(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for header in ("ir/blocks.h", "plan/plan.h", "machine/mesh.h", "machine/links.h"):
                (root / "src" / header).parent.mkdir(parents=True, exist_ok=True)
                (root / "src" / header).write_text("#pragma once\n")
            path = root / "src" / name
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
                         ["src/ir/a.cpp:1: `ir` may include support, so not `plan/plan.h`"])

    def test_ir_sees_the_mesh_and_nothing_else_of_the_machine(self):
        self.assertEqual(self.findings("ir/a.cpp", '#include "machine/mesh.h"\n'), [])
        self.assertEqual(len(self.findings("ir/a.cpp", '#include "machine/links.h"\n')), 1)

    def test_the_verifier_may_not_use_our_blocks(self):
        self.assertEqual(
            self.findings("verify/a.cpp", '#include "ir/blocks.h"\n'),
            ["src/verify/a.cpp:1: `verify` keeps its own model and may not include `ir/blocks.h`"])

    def test_a_catch_is_found_but_not_in_comments(self):
        self.assertEqual(len(self.findings("ir/a.cpp", "int f() { try {} catch (...) {} }\n")), 1)
        self.assertEqual(self.findings("ir/a.cpp", "// never catch (anything)\n"), [])

    def test_heavy_headers_stay_out_of_headers(self):
        self.assertEqual(len(self.findings("ir/a.h", "#pragma once\n#include <regex>\n")), 1)


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
        self.assertFalse(self.refused("src/home/page and a/work/b"))


if __name__ == "__main__":
    unittest.main()
