// Columns, sizes and times.
#include "admin/text/terminal.hpp"

#include "common/base/text.hpp"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>

#include <ctime>
#include <iostream>

namespace pi_agent {

namespace {

constexpr std::uint64_t one_second = 1'000'000;
constexpr std::uint64_t day_seconds = 86'400;

// The later bytes of a character in UTF-8, which have no width of their own.
bool goes_on(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Characters, not bytes.
std::size_t width_of(const std::string &text)
{
    return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, goes_on));
}

// "…" replaces what is left out, so that the text has at most as many columns.
std::string without_beginning(const std::string &text, std::size_t columns)
{
    const std::size_t width = width_of(text);
    if (width <= columns) return text;
    std::size_t begin = 0;
    for (std::size_t left_out = width - columns + 1; begin < text.size() && (left_out > 0 || goes_on(text[begin])); ++begin)
        if (!goes_on(text[begin])) --left_out;
    return "…" + text.substr(begin);
}

std::string without_end(const std::string &text, std::size_t columns)
{
    if (width_of(text) <= columns) return text;
    std::size_t end = 0;
    for (std::size_t kept = 0; end < text.size(); ++end)
        if (!goes_on(text[end]) && kept++ == columns - 1) break;
    return text.substr(0, end) + "…";
}

std::time_t in_seconds_since_1970(std::uint64_t microseconds)
{
    return static_cast<std::time_t>(microseconds / one_second);
}

[[noreturn]] void refuse_time(std::string_view text)
{
    throw Failure(ExitStatus::usage,
                  "the time '" + escape_for_display(text) +
                      "' is not valid: write 2026-03-01, '2026-03-01 12:00', today, yesterday, 2h (for two hours ago), or @SECONDS");
}

// A number of an option's, of seconds or more.
std::optional<std::uint64_t> parse_amount(std::string_view text)
{
    const auto number = to_number<std::uint64_t>(text);
    return number && *number <= 1'000'000'000'000 ? number : std::nullopt;
}

std::optional<std::uint64_t> parse_ago(std::string_view text, std::uint64_t now)
{
    if (text.empty()) return std::nullopt;
    const auto number = parse_amount(text.substr(0, text.size() - 1));
    const std::size_t unit = std::string_view("smhd").find(text.back());
    if (!number || unit == std::string_view::npos) return std::nullopt;
    constexpr std::array<std::uint64_t, 4> seconds = {1, 60, 3600, day_seconds};
    const std::uint64_t ago = *number * seconds.at(unit) * one_second;
    return ago < now ? now - ago : 0;
}

std::uint64_t start_of_day(std::uint64_t now, int days_back)
{
    std::tm parts = fmt::localtime(in_seconds_since_1970(now));
    parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
    parts.tm_mday -= days_back;
    parts.tm_isdst = -1;
    return static_cast<std::uint64_t>(std::mktime(&parts)) * one_second;
}

} // namespace

std::string to_table(const Row &header, std::vector<Row> rows)
{
    for (auto &row : rows)
        std::ranges::replace(row, std::string(), std::string("-"));
    rows.insert(rows.begin(), header);
    std::vector<std::size_t> widths(header.size(), 0);
    for (const auto &row : rows)
        for (std::size_t column = 0; column < row.size(); ++column)
            widths.at(column) = std::max(widths.at(column), width_of(row[column]));
    std::string text;
    for (const auto &row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            text += row[column];
            if (column + 1 < row.size()) text.append(widths[column] - width_of(row[column]) + 2, ' ');
        }
        text += '\n';
    }
    return text;
}

std::optional<std::size_t> columns_for(const std::ostream &out)
{
    if (out.rdbuf() != std::cout.rdbuf() || ::isatty(STDOUT_FILENO) != 1) return std::nullopt;
    constexpr std::size_t most_columns = 100;
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return most_columns; // NOLINT(*-vararg)
    return std::min<std::size_t>(window.ws_col, most_columns);
}

std::string to_table(const Row &header, std::vector<Row> rows, std::size_t columns, Cut cut)
{
    std::size_t before = 0; // of the last column, with the spaces between
    for (std::size_t column = 0; column + 1 < header.size(); ++column) {
        std::size_t width = width_of(header[column]);
        for (const auto &row : rows)
            width = std::max({width, width_of(row[column]), std::size_t{1}});
        before += width + 2;
    }
    constexpr std::size_t fewest = 12; // columns for it, however wide the others are
    const std::size_t room = std::max(fewest, columns > before ? columns - before : 0);
    for (auto &row : rows)
        row.back() = cut == Cut::beginning ? without_beginning(row.back(), room) : without_end(row.back(), room);
    return to_table(header, std::move(rows));
}

std::string short_id(const std::string &session)
{
    constexpr std::size_t digits = 8;
    return session.substr(0, digits);
}

std::string short_path(const std::string &path, const std::string &user)
{
    const auto account = find_account(user);
    return !account || account->home == "/" || !is_within(path, account->home) ? path : "~" + path.substr(account->home.size());
}

std::string to_age(const std::optional<std::uint64_t> &microseconds)
{
    const auto now = now_microseconds();
    return microseconds ? to_duration(now > *microseconds ? now - *microseconds : 0) : "";
}

std::string to_size(const std::optional<std::uint64_t> &bytes)
{
    if (!bytes) return "";
    constexpr std::array<const char *, 5> units = {"", "K", "M", "G", "T"};
    auto amount = static_cast<double>(*bytes);
    std::size_t unit = 0;
    for (; amount >= 1024 && unit + 1 < units.size(); ++unit)
        amount /= 1024;
    return fmt::format("{:.{}f}{}", amount, unit == 0 || amount >= 10 ? 0 : 1, units.at(unit));
}

std::string to_duration(const std::optional<std::uint64_t> &microseconds)
{
    if (!microseconds) return "";
    const std::uint64_t seconds = *microseconds / one_second;
    if (seconds < 10) return fmt::format("{:.2f}s", static_cast<double>(*microseconds) / static_cast<double>(one_second));
    if (seconds < 60) return fmt::format("{}s", seconds);
    if (seconds < 3600) return fmt::format("{}m {}s", seconds / 60, seconds % 60);
    if (seconds < day_seconds) return fmt::format("{}h {}m", seconds / 3600, seconds % 3600 / 60);
    return fmt::format("{}d {}h", seconds / day_seconds, seconds % day_seconds / 3600);
}

std::string to_local_time(std::uint64_t microseconds)
{
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(in_seconds_since_1970(microseconds)));
}

std::string to_utc_time(std::uint64_t microseconds)
{
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(in_seconds_since_1970(microseconds)), microseconds % one_second);
}

std::uint64_t parse_time(std::string_view text, std::uint64_t now)
{
    if (text == "today") return start_of_day(now, 0);
    if (text == "yesterday") return start_of_day(now, 1);
    if (const auto ago = parse_ago(text, now)) return *ago;
    if (!text.empty() && text.front() == '@') {
        if (const auto seconds = parse_amount(text.substr(1))) return *seconds * one_second;
        refuse_time(text);
    }
    const std::string copy(text);
    for (const auto *format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
        std::tm parts{};
        if (const char *end = strptime(copy.c_str(), format, &parts); end == nullptr || *end != '\0') continue;
        parts.tm_isdst = -1;
        const std::tm asked = parts;
        const std::time_t seconds = std::mktime(&parts);
        if (seconds < 0 || parts.tm_mday != asked.tm_mday) break; // 31 February does not exist
        return static_cast<std::uint64_t>(seconds) * one_second;
    }
    refuse_time(text);
}

std::uint64_t now_microseconds()
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

void print_json(nlohmann::json answer, std::ostream &out)
{
    answer["version"] = answer_version;
    // A terminal may take a C1 control character of a user's for a command, and show text in another order.
    constexpr bool ascii_only = true;
    out << answer.dump(2, ' ', ascii_only, nlohmann::json::error_handler_t::replace) << '\n';
}

nlohmann::json number_or_null(const std::optional<std::uint64_t> &number)
{
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

nlohmann::json time_or_null(const std::optional<std::uint64_t> &microseconds)
{
    return microseconds ? nlohmann::json(to_utc_time(*microseconds)) : nlohmann::json(nullptr);
}

nlohmann::json text_or_null(const std::string &text)
{
    return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

} // namespace pi_agent
