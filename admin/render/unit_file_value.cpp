// The names and forms in which systemd.exec(5) and systemd.resource-control(5) have what org.freedesktop.systemd1(5) has otherwise.
#include "admin/render/unit_file_value.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t microseconds_a_second = 1'000'000;

struct Renamed {
    const char *property;
    const char *key;
};
constexpr std::array renamed = {Renamed{"CPUQuotaPerSecUSec", "CPUQuota"}, Renamed{"RuntimeMaxUSec", "RuntimeMaxSec"},
                                Renamed{"TimeoutStopUSec", "TimeoutStopSec"}, Renamed{"MemoryMaxScale", "MemoryMax"}};

std::string key_of(const std::string &property)
{
    const auto *found = std::find_if(renamed.begin(), renamed.end(), [&](const Renamed &one) { return property == one.property; });
    return found == renamed.end() ? property : found->key;
}

// A share of all ones, as runner/plan/limits.hpp makes it of a percentage.
std::string percent_of(std::uint32_t share)
{
    return fmt::format("{}%", (std::uint64_t{share} * 100 + UINT32_MAX - 1) / UINT32_MAX);
}

std::string number_text(const std::string &property, std::uint64_t number)
{
    if (property == "RestrictNamespaces" && number == 0) return "yes"; // of no kind at all
    if ((property == "CapabilityBoundingSet" || property == "AmbientCapabilities") && number == 0) return "";
    if (property == "CPUQuotaPerSecUSec") return fmt::format("{}%", number / (microseconds_a_second / 100));
    if (property == "RuntimeMaxUSec" || property == "TimeoutStopUSec") return fmt::format("{}s", number / microseconds_a_second);
    return fmt::format("{}", number);
}

struct ValueLines {
    const std::string &property;

    [[nodiscard]] std::string line(const std::string &value) const { return key_of(property) + "=" + value + "\n"; }

    std::string operator()(bool value) const { return line(value ? "yes" : "no"); }
    std::string operator()(std::uint32_t value) const
    {
        return line(property == "UMask" ? fmt::format("{:04o}", value) : percent_of(value));
    }
    std::string operator()(std::uint64_t value) const { return line(number_text(property, value)); }
    std::string operator()(const SignedNumber &value) const { return line(fmt::format("{}", value.value)); }
    std::string operator()(const std::string &value) const { return line(value); }
    std::string operator()(const std::vector<std::string> &values) const { return line(fmt::format("{}", fmt::join(values, " "))); }
    std::string operator()(const NameFilter &filter) const
    {
        return line((filter.allow ? "" : "~") + fmt::format("{}", fmt::join(filter.names, " ")));
    }
    std::string operator()(const BindList &list) const
    {
        std::string text;
        for (const auto &bind : list.binds)
            text += line(bind.source == bind.target ? bind.source : bind.source + ":" + bind.target + ":norbind");
        return text;
    }
    std::string operator()(const TemporaryFileSystems &filesystems) const
    {
        std::string text;
        for (const auto &[place, options] : filesystems.entries)
            text += line(place + ":" + options);
        return text;
    }
    std::string operator()(const Command &command) const { return line(fmt::format("{}", fmt::join(command.arguments, " "))); }
    std::string operator()(const AddressRanges &ranges) const
    {
        std::vector<std::string> texts;
        for (const auto &range : ranges.ranges)
            texts.push_back(to_string(range));
        return line(fmt::format("{}", fmt::join(texts, " ")));
    }
};

} // namespace

std::string unit_file_lines(const UnitProperty &property)
{
    return std::visit(ValueLines{property.name}, property.value);
}

} // namespace pi_agent
