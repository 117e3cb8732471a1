"""Feeds good and bad prose to every rule of prose.py and message_prose.py, and shows what counts as a word, a sentence and a page."""

import sys
import unittest
from pathlib import Path

import message_prose
import prose
import word_budget
from sources import SourceFile


def rules_of(text, path="docs/page.md"):
    return [rule for _, rule, _ in prose.check_page(path, text)]


def lengths(text, path="docs/page.md"):
    return [words for _, words, _, _ in prose.measure(path, text).sentences]


def sentence(words):
    """One of so many words, wrapped after each eighth."""
    said = ["The", "agent"] + ["reads"] * (words - 3) + ["files."]
    return "\n".join(" ".join(said[at : at + 8]) for at in range(0, words, 8))


class Sentences(unittest.TestCase):
    def test_a_sentence_ends_at_its_mark_and_nowhere_else(self):
        for text, expected in {
            "The agent reads. It writes! Does it? Yes.": [3, 2, 2, 1],
            "Some programs, e.g. Emacs, write there. Done.": [6, 1],
            "Read docs/policy.md and 1.2.3 of pi-agent.conf first.": [7],
            "Read `a file. Then another!` first.": [3],
            "It ends (as here.) The next begins.": [4, 3],
            'It says "denied." The next begins.': [3, 3],
            "**It may do it badly.** It can delete.": [5, 3],
            "Debian 12 works. pi runs there. `pi` does too.": [3, 3, 3],
            "See i.e. This one, cf. That one.": [7],
            "first · second of them ·\nthird": [1, 3, 1],
            "A line\nthat goes over\nthree lines.": [7],
        }.items():
            self.assertEqual(lengths(text), expected, text)

    def test_code_and_links_count_as_what_is_read(self):
        self.assertEqual(lengths("Type `sudo pi-agentctl apply --dry-run` now."), [3])
        self.assertEqual(lengths("Type ``a `tick` b`` now."), [3])
        self.assertEqual(lengths("See [the page of keys](reference/policy.md#keys) — now."), [6])
        self.assertEqual(lengths("A code `that\nbreaks` over lines."), [5])

    def test_items_and_cells_are_sentences_of_their_own(self):
        self.assertEqual(lengths("Do this:\n\n- open the file\n- read\n  it. Close it.\n\n1. One more thing here\n"), [2, 3, 2, 2, 4])
        self.assertEqual(lengths("| a | b |\n| --- | :-: |\n| `x|y` is code | two words. And three<br>four |\n"), [1, 1, 3, 2, 2, 1])

    def test_a_label_does_not_improve_the_average(self):
        page = "| key | kind |\n| --- | --- |\n" + "| a | b |\n" * 50 + "\n" + (sentence(25) + " ") * 3
        self.assertIn("average-sentence", rules_of(page))

    def test_the_average_and_the_longest_have_limits(self):
        self.assertEqual(rules_of((sentence(20) + "\n") * 3), [])
        self.assertEqual(rules_of((sentence(21) + "\n") * 3), ["average-sentence"])
        self.assertEqual(rules_of((sentence(3) + "\n") * 9 + sentence(40)), [])
        self.assertEqual(rules_of((sentence(3) + "\n") * 9 + sentence(41)), ["long-sentence"])

    def test_a_finding_names_the_line_where_the_sentence_begins(self):
        page = "# Page\n\nOne.\nTwo. " + sentence(41)
        self.assertEqual([line for line, rule, _ in prose.check_page("docs/page.md", page) if rule == "long-sentence"], [4])


class Pages(unittest.TestCase):
    def test_words_of_a_page_have_a_limit(self):
        page = (sentence(10) + "\n") * 90
        self.assertEqual(rules_of(page, "README.md"), [])
        self.assertEqual(rules_of(page + "More.\n", "README.md"), ["page-words"])
        self.assertEqual(rules_of(page + "More.\n", "docs/README.md"), [])
        self.assertEqual(rules_of((sentence(16) + "\n") * 94), ["page-words"])

    def test_code_is_not_prose(self):
        for code in ("```sh\n# " + "word " * 950 + "\n\n# more\n```\n", "Type:\n\n    " + "word " * 950 + "\n",
                     "- Type:\n\n        " + "word " * 950 + "\n", "<!-- " + "word " * 950 + "-->\n"):
            self.assertEqual(rules_of("# Page\n\n" + code, "README.md"), [], code[:20])
        self.assertIn("page-words", rules_of("- An item:\n\n    " + "word " * 950 + "\n", "README.md"))

    def test_lines_of_a_page_have_a_limit(self):
        self.assertEqual(rules_of("A line.\n\n" * 100), [])
        self.assertEqual(rules_of("A line.\n\n" * 101), ["page-lines"])

    def test_the_manual_of_a_command_may_have_more_lines(self):
        for path, most in (("man/pi-agentctl.8.scd", 300), ("man/pi.1.scd", 300), ("man/policy.5.scd", 200), ("docs/man/a.1.scd.md", 200)):
            self.assertEqual(rules_of("A line.\n\n" * (most // 2), path), [], path)
            self.assertEqual(rules_of("A line.\n\n" * (most // 2 + 1), path), ["page-lines"], path)

    def test_a_manual_that_is_named_is_no_word(self):
        self.assertEqual(rules_of("The manual is cgroups(7) here.\n"), [])
        self.assertEqual(rules_of("The cgroups (7) are many.\n"), ["words"])

    def test_a_generated_page_may_be_long(self):
        long = "| a cell of four words |\n" * 400
        self.assertEqual(rules_of("# Page\n\n" + long), ["page-words", "page-lines"])
        self.assertEqual(rules_of("# Page\n\nTo write it again: `PI_AGENT_WRITE_PAGE=1` with `tests/x.py`.\n\n" + long), [])
        self.assertEqual(rules_of("# Page\n\n<!-- What follows is written by tests/x.py. -->\n" + long), [])
        self.assertEqual(rules_of("<!-- The options, written by tests/x.py. -->\n" + long + "<!-- End of the options. -->\n" + long), ["page-words", "page-lines"])
        self.assertEqual(rules_of("# Page\n\nThis is said to be generated by a hand.\n\n" + long), ["page-words", "page-lines"])

    def test_a_generated_page_is_read_all_the_same(self):
        self.assertEqual(rules_of("To write it again: `X=1`.\n\n| " + sentence(41).replace("\n", " ") + " |\n| This is no file. |\n" + "| Short it is here. |\n" * 9),
                         ["long-sentence", "words"])

    def test_prose_is_wrapped(self):
        self.assertEqual(rules_of("word " * 19 + "words\n"), [])
        self.assertEqual(rules_of("word " * 19 + "words.\n"), ["long-line"])
        for line in ("| " + "word " * 30 + "|", "    " + "word " * 30, "- [text](" + "x" * 120 + ")", "`" + "word " * 30 + "`", "# " + "word " * 30):
            self.assertEqual(rules_of("Word.\n\n" + line + "\n"), [], line)
        self.assertEqual(rules_of("- See [text](" + "x" * 120 + ")\n"), ["long-line"])

    def test_manuals_are_pages(self):
        manual = 'pi(1) "pi-agent"\n\n# NAME\n\npi - the agent\n\n*--opt* _NAME_ ' + "[*--x* _Y_] " * 10 + "\n\tPrint it. Print _more of it_.\n\n```\ncode " + "x " * 60 + "\n```\n"
        self.assertEqual(rules_of(manual, "man/pi.1.scd"), [])
        self.assertEqual(lengths(manual, "man/pi.1.scd"), [3, 2, 2])
        self.assertEqual(rules_of(manual + "\n" + "word " * 41 + "\n", "man/pi.1.scd"), ["long-sentence", "long-line"])

    def test_which_files_are_pages(self):
        for path in ("README.md", "docs/a.md", "docs/concepts/a.md", "man/pi.1.scd"):
            self.assertTrue(prose.is_page(path), path)
        for path in ("docs/assurance.md", "tests/README.md", "docs/a.svg", "man/meson.build"):
            self.assertFalse(prose.is_page(path), path)


# What each phrase finds and what it leaves alone, in the order of prose.PHRASES.
PHRASES = (
    ("A link is none.", "It is none of them."),
    ("A pipe is no file.", "There is no file. It is no longer there."),
    ("On paper, it holds.", "The paper says so."),
    ("All is as it is to be.", "All is well."),
    ("The file is to be removed.", "It wants to be removed."),
    ("Hooks and their like.", "They like hooks."),
    ("What is told helps.", "The agent is told where it is."),
    ("The name is that of the user.", "Think of that often."),
    ("Nobody can be asked.", "Nobody can read it."),
    ("It works all the same.", "They have all the same owner."),
    ("No program of ours.", "One of our programs."),
    ("It works as ever.", "As every file."),
    ("It is in the place of that one.", "In the placeholder."),
    ("This is mended.", "An amendment."),
    ("It is written anew.", "A new file."),
    ("The file is not there.", "They are not therefore lost."),
    ("Everything but for git.", "But forks are fine."),
    ("Nothing of the home.", "Nothing offers it."),
    ("This is said of roots.", "It is said once."),
    ("The directory is root's.", "It is root's own file."),
    ("It says whose it is.", "Whose file it is."),
    ("What becomes of it.", "What it becomes."),
    ("It lies in the home.", "It lies."),
    ("What is therein.", "What is there in."),
)


class Words(unittest.TestCase):
    def test_every_phrase_fires_and_leaves_english_alone(self):
        self.assertEqual(len(PHRASES), len(prose.PHRASES))
        for (bad, good), (pattern, _) in zip(PHRASES, prose.PHRASES):
            found = [remedy for _, _, remedy in prose.words_not_used(bad)]
            self.assertIn(dict(prose.PHRASES)[pattern], found, bad)
            self.assertNotIn(dict(prose.PHRASES)[pattern], [remedy for _, _, remedy in prose.words_not_used(good)], good)

    def test_openings_that_are_no_questions(self):
        self.assertEqual(len(list(prose.words_not_used("Who may not look takes nothing. Who may run it? What is not a file stays."))), 2)
        self.assertEqual(rules_of("## Who may do what\n"), [])

    def test_phrases_are_found_over_lines_and_not_in_code(self):
        self.assertEqual(rules_of("It stands in the\nplace of that.\n"), ["words"])
        self.assertEqual(rules_of("It says `there: is none` and `stdout`.\n"), [])
        self.assertEqual([line for line, _, _ in prose.check_page("docs/a.md", "One.\n\nTwo.\nThis is\nnone.\n")], [4])

    def test_every_term_has_words_that_are_found(self):
        for term, meaning, others in prose.TERMS:
            self.assertTrue(meaning)
            for other in others:
                self.assertIn("words", rules_of(f"See the {other} here.\n"), other)
                self.assertIn("words", rules_of(f"See the {other}s here.\n"), other)
            self.assertEqual(rules_of(f"See the {term} here.\n"), [], term)

    def test_the_table_for_people_has_every_term(self):
        table = "\n".join(prose.terms_table())
        for term, _, others in prose.TERMS:
            self.assertIn(f"| {term} |", table)
            self.assertIn(f"`{others[0]}`", table)
        self.assertEqual(message_prose.missing_terms(table + "\n"), [])
        self.assertEqual(len(message_prose.missing_terms(table.replace(f"| {prose.TERMS[0][0]} |", "| x |"))), 2)

    def test_the_contributors_page_has_the_table(self):
        page = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
        self.assertEqual(message_prose.missing_terms(page.read_text(encoding="utf-8")), [])


def findings_of(files, not_yet=()):
    return [(found.path, found.line, found.rule) for found in message_prose.check_prose([SourceFile(path, text) for path, text in files], not_yet)]


CONTRIBUTING = ("CONTRIBUTING.md", "\n".join(prose.terms_table()) + "\n")


class InTheLint(unittest.TestCase):
    def test_a_page_is_found_or_is_not_yet_rewritten(self):
        bad = ("docs/a.md", "This is no page.\n")
        self.assertEqual(findings_of([CONTRIBUTING, bad]), [("docs/a.md", 1, "words")])
        self.assertEqual(findings_of([CONTRIBUTING, bad], ("docs/a.md",)), [])

    def test_an_entry_that_is_not_needed_fails(self):
        good = ("docs/a.md", "This is a page.\n")
        self.assertEqual(findings_of([CONTRIBUTING, good, (message_prose.HERE, '"""The lint of prose."""\n')], ("docs/a.md", "messages of wrapper/")),
                         [("tests/lint/message_prose.py", 1, "stale-page")] * 2)

    def test_the_table_of_terms_is_compared(self):
        self.assertIn(("CONTRIBUTING.md", 1, "terms"), findings_of([("CONTRIBUTING.md", "No table.\n")]))

    def test_messages_are_prose(self):
        long = "the agent" + " reads" * 40 + " files"
        for code, rule in {
            f'throw Failure("{long}");': "long-sentence",
            'say("a pipe is no file");': "words",
            'say("a pipe is " "no file");': "words",
            'say(fmt::format("{} is not there", path));': "words",
        }.items():
            self.assertEqual(findings_of([CONTRIBUTING, ("wrapper/a.cpp", "// P.\n\n" + code + "\n")]), [("wrapper/a.cpp", 3, rule)], code)
        for code in ('open("is_none");', 'say("Who may run the agent");', 'say("' + "name " * 50 + '");', 'say("the file /sys/fs/cgroup/cgroup.procs");',
                     'say("' + ("the agent reads it\\n" * 20) + '");', 'say("is no");', 'say("`a is no b` stays here");', "int a = 0;"):
            self.assertEqual(findings_of([CONTRIBUTING, ("wrapper/a.cpp", "// P.\n\n" + code + "\n")]), [], code)
        settings = "am.keepcr format.to " * 30
        for listed, rules in ((settings, []), (settings + "format.to", []), (settings + "format", ["long-sentence"]), (settings + "format.to.", ["long-sentence"]),
                              (settings + "Format.to", ["long-sentence"]), ("the agent reads all of its files " * 9, ["long-sentence"])):
            self.assertEqual([rule for _, _, rule in findings_of([CONTRIBUTING, ("wrapper/a.cpp", f'// P.\n\nsay("{listed}");\n')])], rules, listed[-20:])
        self.assertEqual(findings_of([CONTRIBUTING, ("tests/unit/a.cpp", 'say("a pipe is no file");\n')]), [])

    def test_comments_are_prose(self):
        self.assertEqual(findings_of([CONTRIBUTING, ("runner/a.hpp", "// Reads a pipe, which is\n// no file.\nint a; // that of b\n")]),
                         [("runner/a.hpp", 1, "words"), ("runner/a.hpp", 3, "words")])
        self.assertEqual(findings_of([CONTRIBUTING, ("runner/a.hpp", "// It is no file.\n")], ("comments of runner/",)), [])


class Budget(unittest.TestCase):
    PAGES = (
        SourceFile("docs/a.md", "# A page\n\nThe agent reads `a file of words`.\n\n    pi -p words words\n"),
        SourceFile("man/a.1.scd", "a(1)\n\n# NAME\n\nThe agent reads.\n"),
        SourceFile("policy-examples/README.md", "Three more words.\n"),
        SourceFile("docs/b.md", "<!-- What follows is written by tests/nix/test_module.py. -->\n\nNobody wrote this by hand.\n"),
        SourceFile("docs/troubleshooting.md", "The tests wrote this page.\n"),
        SourceFile("tests/README.md", "Only tests read this.\n"),
        SourceFile("runner/a.cpp", "// Reads a file.\n"),
    )

    def found(self, files, most):
        return [(finding.path, finding.rule) for finding in word_budget.check_budget(files, most)]

    def test_pages_and_manuals_count_and_what_tests_write_does_not(self):
        self.assertEqual(word_budget.words_of(self.PAGES), {"docs/a.md": 6, "man/a.1.scd": 4, "policy-examples/README.md": 3, "docs/b.md": 0})

    def test_a_sum_above_the_budget_is_found_with_the_longest_pages(self):
        self.assertEqual(self.found(self.PAGES, 13), [])
        self.assertEqual(self.found(self.PAGES, 12), [(word_budget.HERE, "word-budget")])
        said = next(word_budget.check_budget(self.PAGES, 12)).text
        self.assertIn("13 words", said)
        self.assertIn("docs/a.md (6), man/a.1.scd (4)", said)

    def test_a_made_page_that_is_gone_is_found(self):
        made = [SourceFile(path, "") for path in word_budget.MADE]
        here = SourceFile(word_budget.HERE, "")
        self.assertEqual(self.found([*made, here], 0), [])
        self.assertEqual(self.found([*made[1:], here], 0), [(word_budget.HERE, "stale-page")])


if __name__ == "__main__":
    sys.exit(unittest.main())
