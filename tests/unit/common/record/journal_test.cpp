// Entries as the journal takes them: common/record/record_event.hpp
#include "common/record/record_event.hpp"

#include "support/fake_journal.hpp"
#include "support/skipped.hpp"

#include <chrono>
#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace journal_test {

TEST_CASE("an entry is lines of names and values")
{
    CHECK(encode_journal_entry({{"MESSAGE", "hello"}, {"PRIORITY", "6"}}) == "MESSAGE=hello\nPRIORITY=6\n");
}

TEST_CASE("a value with a newline goes with its length, and begins no field")
{
    using namespace std::string_literals;
    CHECK(encode_journal_entry({{"MESSAGE", "a\nPRIORITY=0"}, {"PRIORITY", "6"}}) ==
          "MESSAGE\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\nPRIORITY=6\n"s);
}

TEST_CASE("the journal's word counts: taken where it is there, not taken where it is not, or hangs" * doctest::skip(not_root()))
{
    const std::string said = in_private_run([]() -> std::string {
        const std::vector<JournalField> fields = {{"MESSAGE", "hello"}};
        std::string text = send_to_journal(fields, 100) ? "taken by nobody, " : "absent, ";
        FakeJournal journal;
        text += send_to_journal(fields, 100) ? "taken, " : "not taken, ";
        text += journal.entry() == "MESSAGE=hello\n" ? "as it was sent, " : "damaged, ";
        int count = 0;
        while (count < 10'000 && send_to_journal(fields, 1)) // until its queue is full
            ++count;
        const auto before = std::chrono::steady_clock::now();
        const bool taken = send_to_journal(fields, 200);
        const auto waited = std::chrono::steady_clock::now() - before;
        text += taken ? "taken by a full one" : "full";
        return text + (waited >= std::chrono::milliseconds(150) && waited < std::chrono::seconds(5) ? ", waited" : ", not waited");
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == "absent, taken, as it was sent, full, waited");
}

} // namespace journal_test
