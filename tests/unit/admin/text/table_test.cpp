// Columns, sizes, durations and times: admin/text/terminal.hpp
#include "admin/text/terminal.hpp"

#include "common/base/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace pi_agent;

namespace table_test {

namespace {

constexpr std::uint64_t second = 1'000'000;
constexpr std::uint64_t now = 1'772'366'400 * second; // 2026-03-01 12:00:00 UTC

// Times are read where the host is; here that is UTC.
struct InUtc {
    InUtc()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }
};
const InUtc in_utc;

} // namespace

TEST_CASE("columns are as wide as their widest value, and what is not known is a dash")
{
    CHECK(to_table({"A", "LONG", "C"}, {{"x", "", "1"}, {"wide one", "y", ""}}) == "A         LONG  C\n"
                                                                                   "x         -     1\n"
                                                                                   "wide one  y     -\n");
    CHECK(to_table({"A", "B"}, {{"\xc3\xa4", "1"}, {"bb", "2"}}) == "A   B\n\xc3\xa4   1\nbb  2\n");
}

TEST_CASE("sizes and durations are short, and empty where nothing is known")
{
    CHECK(to_size(std::nullopt).empty());
    CHECK(to_size(0) == "0");
    CHECK(to_size(1023) == "1023");
    CHECK(to_size(1536) == "1.5K");
    CHECK(to_size(20ULL << 20U) == "20M");
    CHECK(to_size(3ULL << 40U) == "3.0T");
    CHECK(to_duration(std::nullopt).empty());
    CHECK(to_duration(250'000) == "0.25s");
    CHECK(to_duration(59 * second) == "59s");
    CHECK(to_duration(200 * second) == "3m 20s");
    CHECK(to_duration(7500 * second) == "2h 5m");
    CHECK(to_duration(273'600 * second) == "3d 4h");
}

TEST_CASE("times are shown for people and for programs")
{
    CHECK(to_local_time(now) == "2026-03-01 12:00:00");
    CHECK(to_utc_time(now + 42) == "2026-03-01T12:00:00.000042Z");
}

TEST_CASE("times that an option may say")
{
    CHECK(parse_time("2026-03-01 12:00:30", now) == now + 30 * second);
    CHECK(parse_time("2026-03-01 12:00", now) == now);
    CHECK(parse_time("2026-03-01", now) == now - 12 * 3600 * second);
    CHECK(parse_time("today", now) == now - 12 * 3600 * second);
    CHECK(parse_time("yesterday", now) == now - 36 * 3600 * second);
    CHECK(parse_time("2h", now) == now - 7200 * second);
    CHECK(parse_time("3d", now) == now - 3 * 86'400 * second);
    CHECK(parse_time("@5", now) == 5 * second);
    CHECK(parse_time("1000000000d", now) == 0);
    for (const auto *wrong :
         {"", "soon", "h", "-2h", "2 h", "@", "@x", "5", "2026-02-31", "2026-03-01T12:00", "2026-03-01 25:00", "99999999999999999999s"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(static_cast<void>(parse_time(wrong, now)), Failure);
    }
}

TEST_CASE("a table fits the columns of a terminal: its last column loses its beginning or its end")
{
    const std::vector<Row> rows = {{"0123abcd", "~/projects/a-long-name-of-a-directory/äöü"}, {"4567", "~/a"}};
    const Row header = {"SESSION", "DIRECTORY"};
    CHECK(to_table(header, rows, 30, Cut::beginning) == "SESSION   DIRECTORY\n0123abcd  …-of-a-directory/äöü\n4567      ~/a\n");
    CHECK(to_table(header, rows, 30, Cut::end) == "SESSION   DIRECTORY\n0123abcd  ~/projects/a-long-n…\n4567      ~/a\n");
    CHECK(to_table(header, rows, 100, Cut::end) == to_table(header, rows));
    CHECK(to_table(header, rows, 1, Cut::end) == "SESSION   DIRECTORY\n0123abcd  ~/projects/…\n4567      ~/a\n"); // never less than 12
    CHECK(short_id("0123456789abcdef0123456789abcdef") == "01234567");
    CHECK(to_age(std::nullopt).empty());
    std::ostringstream elsewhere;
    CHECK_FALSE(columns_for(elsewhere));
}

TEST_CASE("every answer for programs says the version of its form")
{
    std::ostringstream out;
    print_json({{"list", nlohmann::json::array()}, {"number", number_or_null(std::nullopt)}}, out);
    const auto answer = nlohmann::json::parse(out.str());
    CHECK(answer["version"] == 1);
    CHECK(answer["number"].is_null());
}

TEST_CASE("what a user wrote reaches a terminal as plain ASCII, and a program as it was")
{
    const std::string written = "a\xc2\x9b"
                                "2Jb\xe2\x80\xae"
                                "c\xc3\xa4\x1b"; // CSI of 8-bit terminals, right-to-left override, a letter, ESC
    std::ostringstream out;
    print_json({{"seen", written}, {"broken", "\x9b"}}, out);
    const auto text = out.str();
    CHECK(std::all_of(text.begin(), text.end(), [](char byte) { return byte == '\n' || (byte >= ' ' && byte <= '~'); }));
    const auto answer = nlohmann::json::parse(text);
    CHECK(answer["seen"] == written);
    CHECK(answer["broken"] == "\xef\xbf\xbd");
}

} // namespace table_test
