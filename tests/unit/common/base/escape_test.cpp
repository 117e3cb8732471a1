// common/base/text.hpp and common/base/text.hpp
#include "common/base/text.hpp"
#include "common/decide/explained.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace escape_test {

TEST_CASE("ordinary text in any language stays as it is")
{
    CHECK(escape_for_display("/home/alice/a b'\"$%:") == "/home/alice/a b'\"$%:");
    CHECK(escape_for_display("größe 目录 \xF0\x9F\x98\x80") == "größe 目录 \xF0\x9F\x98\x80");
    CHECK(escape_for_display("").empty());
}

TEST_CASE("control characters and backslashes become \\xNN")
{
    CHECK(escape_for_display("x\nExecStopPost=+command") == "x\\x0aExecStopPost=+command");
    CHECK(escape_for_display("\x1b[2J\x7f") == "\\x1b[2J\\x7f");
    CHECK(escape_for_display("a\\x0a") == "a\\x5cx0a");
    CHECK(escape_for_display(std::string_view("a\0b", 3)) == "a\\x00b");
}

TEST_CASE("bytes that are no UTF-8 become \\xNN, one by one")
{
    CHECK(escape_for_display("a\xff") == "a\\xff");
    CHECK(escape_for_display("\xc3") == "\\xc3");
    CHECK(escape_for_display("\xc0\xaf") == "\\xc0\\xaf");                     // overlong '/'
    CHECK(escape_for_display("\xed\xa0\x80") == "\\xed\\xa0\\x80");            // surrogate
    CHECK(escape_for_display("\xf4\x90\x80\x80z") == "\\xf4\\x90\\x80\\x80z"); // beyond U+10FFFF
}

TEST_CASE("characters that reorder or end a line become \\u{...}")
{
    CHECK(escape_for_display("a\u202Egpj") == "a\\u{202e}gpj");
    CHECK(escape_for_display("\u2066\u2069") == "\\u{2066}\\u{2069}");
    CHECK(escape_for_display("\u0085\u2028") == "\\u{85}\\u{2028}");
}

TEST_CASE("the bytes come back from what was shown")
{
    for (int byte = 0; byte < 256; ++byte) {
        const std::string one = "a" + std::string(1, static_cast<char>(byte)) + "b";
        CHECK(without_escapes(escape_for_display(one)) == one);
    }
    for (const std::string &text : {std::string("CORP\\dana"), std::string("a\\x0a"), std::string("\\u{202e}"), std::string("größe 目录"),
                                    std::string("a\u202Egpj\u0085\ufeff\U000E0001z"), std::string()})
        CHECK(without_escapes(escape_for_display(text)) == text);
}

TEST_CASE("what nobody escaped stays as it is")
{
    for (const std::string &text : {std::string("a\\"), std::string("\\x"), std::string("\\x4"), std::string("\\xg0"), std::string("\\u{"),
                                    std::string("\\u{}"), std::string("\\u{41}"), std::string("\\u{110000}"), std::string("\\n")})
        CHECK(without_escapes(text) == text);
}

TEST_CASE("only the alphabet of unit properties is safe in one")
{
    CHECK(is_property_safe("/srv/a_b.c:d=e@f-0/Z"));
    for (int byte = 0; byte < 256; ++byte) {
        const char character = static_cast<char>(byte);
        const bool expected = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.:=@-").find(character) !=
                              std::string_view::npos;
        CHECK(is_property_safe(std::string_view(&character, 1)) == expected);
    }
}

TEST_CASE("decodes the longest and shortest form of each length")
{
    CHECK(decode_utf8("\x7f").value == 0x7F);
    CHECK(decode_utf8("\xc2\x80").value == 0x80);
    CHECK(decode_utf8("\xe0\xa0\x80").value == 0x800);
    CHECK(decode_utf8("\xf0\x90\x80\x80").value == 0x10000);
    CHECK(decode_utf8("\xf4\x8f\xbf\xbf").value == 0x10FFFF);
    CHECK(decode_utf8("\xe0\x9f\xbf").length == 0);
    CHECK(decode_utf8("\x80").length == 0);
    CHECK(decode_utf8("\xff").length == 0);
}

} // namespace escape_test
